"""The paper's regret bound and convergence rates, measured."""
