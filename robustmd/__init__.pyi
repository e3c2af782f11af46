from robustmd.python import train as train
from robustmd.registry import Settings as Settings
from robustmd.registry import augment as augment
from robustmd.registry import backbone as backbone
from robustmd.registry import data as data
from robustmd.registry import key as key
from robustmd.registry import loss as loss
from robustmd.registry import method as method
from robustmd.registry import metric as metric
from robustmd.trackers import tracker as tracker
from robustmd.trained_run import Run as Run
from robustmd.trained_run import load_run as load_run
from robustmd.trained_run import load_runs as load_runs

__version__: str
