"""A device without float64 (MPS): the state becomes float32, and every rule still works there."""

import torch

from robustmd.adversary import RegretMeter


def to_a_device_without_float64(tensor):
    if tensor.dtype == torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
    return tensor.clone()


def test_without_float64_the_state_is_float32(make_rule):
    rule, precise = make_rule(), make_rule()
    rule._apply(to_a_device_without_float64)
    meter = RegretMeter.of(rule)
    meter._apply(to_a_device_without_float64)
    assert {b.dtype for b in rule.buffers()} == {torch.float32, torch.int64}
    for losses in torch.rand(50, 4, generator=torch.Generator().manual_seed(0)):
        meter.update(rule.update(losses))
        precise.update(losses)
        assert rule.signed or rule.weights.min() >= 0
        assert abs(float(rule.weights.sum()) - 1) < 1e-6
    assert {b.dtype for b in rule.buffers()} == {torch.float32, torch.int64}
    assert meter.measured().isfinite()
    assert torch.allclose(rule.weights, precise.weights, atol=1e-3)
