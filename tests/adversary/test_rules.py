"""What every rule must do, whichever it is."""

import copy
import io

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from robustmd.adversary import L2, ProjectedAscent, RegretMeter

K = 4


def harsh_losses(count: int, seed: int = 0) -> torch.Tensor:
    """[count, 4] losses from 1e-8 to 1e4, log-uniform; one in ten is 0, some rounds all over."""
    generator = torch.Generator().manual_seed(seed)
    losses = 10 ** (torch.rand(count, K, generator=generator) * 12 - 8)
    losses[torch.rand(count, K, generator=generator) < 0.1] = 0
    losses[torch.rand(count, generator=generator) < 0.01] = 0
    return losses


@pytest.mark.parametrize("updates", [400, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_harsh_updates_leave_a_distribution(make_rule, updates):
    rule, block = make_rule(), min(updates, 2_000)
    seen, precise = torch.empty(block, K), torch.empty(block, K, dtype=torch.float64)
    for start in range(0, updates, block):
        for i, losses in enumerate(harsh_losses(block, seed=start)):
            rule.update(losses)
            seen[i].copy_(rule.weights)
            precise[i].copy_(rule.p)
        for weights in (seen, precise):
            assert rule.signed or weights.min() >= 0
            # Σ|p_k| is 1 but for signed weights, which may be large and cancel. NaN fails as well.
            sums, sizes = weights.double().sum(dim=1), weights.double().abs().sum(dim=1)
            assert ((sums - 1).abs() < 1e-6 * sizes.clamp(min=1)).all()
    for name, state in rule.state_dict().items():
        assert state.isfinite().all(), name


def test_weights_are_the_float32_of_the_distribution(make_rule):
    rule = make_rule()
    assert rule.weights.dtype == torch.float32
    assert rule.p.dtype == torch.float64
    assert rule.weights.min() >= 0  # p₁ is a distribution, also of signed rules
    assert abs(float(rule.weights.double().sum()) - 1) < 1e-6
    for losses in torch.eye(K):
        assert torch.equal(rule.weights, rule.p.float())
        rule.update(losses)
    assert torch.equal(rule.weights, rule.p.float())


def test_a_fresh_object_goes_on_bit_for_bit_from_a_saved_state(make_rule):
    rule, resumed = make_rule(), []
    for seen, row in enumerate(harsh_losses(40, seed=1)):
        if seen in (0, 1, 20):
            file = io.BytesIO()
            torch.save(rule.state_dict(), file)
            file.seek(0)
            resumed.append(make_rule())
            resumed[-1].load_state_dict(torch.load(file, weights_only=True))
        ours = rule.update(row)
        for fresh in resumed:
            assert torch.equal(ours.payoff, fresh.update(row).payoff)
            assert torch.equal(rule.weights, fresh.weights)
        for each in (rule, *resumed):
            each.look_back(row / 2)
    for name, state in rule.state_dict().items():
        assert all(torch.equal(state, fresh.state_dict()[name]) for fresh in resumed), name


def test_updates_read_no_value_on_the_host(make_rule):
    # A fake tensor has no values: .item(), bool() or a shape that depends on them raises.
    with FakeTensorMode():
        rule = make_rule()
        meter = RegretMeter.of(rule)
        for _ in range(3):
            meter.update(rule.update(torch.rand(K)))
            meter.update(rule.update(torch.rand(K), present=torch.ones(K, dtype=torch.bool)))
            rule.look_back(torch.rand(K))
        assert rule.weights.shape == (K,)


def test_the_state_keeps_its_place_in_memory(make_rule):
    # A captured graph replays on addresses: state must be written in place.
    rule = make_rule()
    before = {name: buffer.data_ptr() for name, buffer in rule.named_buffers()}
    for row in harsh_losses(3):
        rule.update(row)
        rule.look_back(row)
    assert {name: buffer.data_ptr() for name, buffer in rule.named_buffers()} == before


def test_weights_are_not_differentiated_through(make_rule):
    rule = make_rule()
    parameter = torch.tensor(2.0, requires_grad=True)
    losses = parameter * torch.arange(1.0, K + 1)
    (rule.weights @ losses).backward()
    before = rule.weights.clone()
    play = rule.update(losses)
    assert parameter.grad == before @ torch.arange(1.0, K + 1)
    assert not any(t.requires_grad for t in (rule.weights, rule.p, play.losses, play.payoff))


def test_an_absent_domain_keeps_its_last_loss(make_rule):
    first, second = torch.tensor([3.0, 1.0, 2.0, 0.5]), torch.tensor([2.0, 7.0, 1.0, 9.0])
    masked, plain = make_rule(), make_rule()
    masked.update(first)
    masked.update(second, present=torch.tensor([True, False, True, False]))
    plain.update(first)
    plain.update(torch.tensor([2.0, 1.0, 1.0, 0.5]))
    assert torch.equal(masked.p, plain.p)
    assert torch.equal(masked.losses, plain.losses)


def test_a_domain_never_seen_counts_with_the_mean_of_the_others(make_rule):
    masked, plain = make_rule(), make_rule()
    present = torch.tensor([True, False, True, False])
    for a, b in ((3.0, 1.0), (5.0, 2.0)):  # the mean is of what is known by then
        play = masked.update(torch.tensor([a, torch.nan, b, 0.0]), present=present)
        mean = (a + b) / 2
        same = plain.update(torch.tensor([a, mean, b, mean]))
        assert torch.equal(play.losses, same.losses)
    assert torch.equal(masked.p, plain.p)


def test_an_iteration_without_any_domain_changes_nothing_it_should_not(make_rule):
    rule = make_rule()
    nobody = torch.zeros(K, dtype=torch.bool)
    play = rule.update(torch.full((K,), torch.nan), present=nobody)
    assert torch.equal(play.losses, make_rule().update(torch.zeros(K)).losses)
    assert abs(float(rule.weights.sum()) - 1) < 1e-6


NOT_FINITE = [[torch.nan, 1, 1, 1], [1, torch.inf, 1, 1], [-torch.inf] * 4, [torch.nan] * 4]


@pytest.mark.parametrize("after", [0, 2], ids=["at first", "later"])
def test_losses_that_are_not_finite_change_nothing_and_are_counted(make_rule, after):
    rule, spared = make_rule(), make_rule()
    meter, spared_meter = RegretMeter.of(rule), RegretMeter.of(spared)
    rows = [*harsh_losses(after + 3)]
    bad = [torch.tensor(losses, dtype=torch.float32) for losses in NOT_FINITE]
    bad.append(torch.tensor([1e308, 1, 1, 1], dtype=torch.float64))  # its square is not finite
    for losses in [*rows[:after], *bad, *rows[after:]]:
        meter.update(rule.update(losses))
        assert abs(float(rule.weights.double().sum()) - 1) < 1e-6 * float(rule.weights.abs().max())
    for losses in rows:
        spared_meter.update(spared.update(losses))
    assert int(rule.skipped) == len(bad)
    rule.skipped.zero_()
    for ours, theirs in ((rule, spared), (meter, spared_meter)):
        for name, state in ours.state_dict().items():
            assert torch.equal(state, theirs.state_dict()[name]), name


def test_an_absent_domain_without_a_finite_loss_skips_nothing(make_rule):
    rule = make_rule()
    present = torch.tensor([True, False, True, True])
    rule.update(torch.tensor([1.0, torch.inf, 2.0, 3.0]), present)
    assert int(rule.skipped) == 0
    rule.update(torch.tensor([torch.inf, 1.0, 2.0, 3.0]), present)
    assert int(rule.skipped) == 1


def test_a_state_of_before_updates_could_be_skipped_loads(make_rule):
    rule, old = make_rule(), make_rule().state_dict()
    del old["skipped"]
    rule.load_state_dict(old)
    assert int(rule.skipped) == 0


def test_a_single_domain_has_all_the_weight():
    rule = ProjectedAscent(1, L2(), 0.5, total_steps=10)
    for loss in (0.0, 3.0, 1e4):
        rule.update(torch.tensor([loss]))
        assert rule.weights.tolist() == [1.0]


def to_a_device_without_float64(tensor):
    if tensor.dtype == torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
    return tensor.clone()


def test_without_float64_the_state_is_float32_and_the_rule_works(make_rule):
    rule, precise = make_rule(), make_rule()
    rule._apply(to_a_device_without_float64)
    meter = RegretMeter.of(rule)
    meter._apply(to_a_device_without_float64)
    assert {b.dtype for b in rule.buffers()} == {torch.float32, torch.int64}
    for losses in torch.rand(50, K, generator=torch.Generator().manual_seed(0)):
        meter.update(rule.update(losses))
        precise.update(losses)
        assert rule.signed or rule.weights.min() >= 0
        assert abs(float(rule.weights.sum()) - 1) < 1e-6
    assert {b.dtype for b in rule.buffers()} == {torch.float32, torch.int64}
    assert meter.measured().isfinite()
    assert torch.allclose(rule.weights, precise.weights, atol=1e-3)


def test_halving_a_model_does_not_round_its_adversary(make_rule):
    rule = make_rule().half()
    assert rule.p.dtype == torch.float64
    assert rule.weights.dtype == torch.float32
    torch.nn.ModuleList([rule]).to(torch.bfloat16)
    assert {b.dtype for b in rule.buffers()} <= {torch.float64, torch.float32, torch.int64}


def test_losses_of_another_shape_or_device_or_in_a_list_are_refused(make_rule):
    rule = make_rule()
    for shape in ([3], [5], [4, 1], []):
        with pytest.raises(ValueError, match=r"losses has shape .*needs one per domain: \[4\]"):
            rule.update(torch.ones(shape))
    with pytest.raises(ValueError, match=r"move it with adversary.to\('meta'\)"):
        rule.update(torch.ones(K, device="meta"))
    with pytest.raises(ValueError, match=r"losses is list; it must be a tensor \[K\]"):
        rule.weighted_loss([1.0] * K)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_it_neither_syncs_nor_changes_under_graph_capture(make_rule):
    losses = harsh_losses(50).clamp(max=100).cuda()
    eager, captured = make_rule().cuda(), make_rule().cuda()
    meters = RegretMeter.of(eager), RegretMeter.of(captured)
    fed = losses[0].clone()

    def play():
        meters[1].update(captured.update(fed))

    start = copy.deepcopy(captured.state_dict()), copy.deepcopy(meters[1].state_dict())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            play()  # warms up what a capture cannot allocate
    torch.cuda.current_stream().wait_stream(side)
    captured.load_state_dict(start[0])
    meters[1].load_state_dict(start[1])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        play()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for row in losses:
            meters[0].update(eager.update(row))
            fed.copy_(row)
            graph.replay()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(eager.weights, captured.weights)
    assert torch.equal(meters[0].measured(), meters[1].measured())
    on_cpu = make_rule()
    for row in losses.cpu():
        on_cpu.update(row)
    assert torch.allclose(eager.weights.cpu(), on_cpu.weights, atol=1e-6)
