"""Two classifiers with mean cross entropy: one convex in its weights, one not."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from robustmd.theory.domains import Domains
from robustmd.theory.problem import Point
from robustmd.theory.streams import stream


class Classifier(ABC):
    """f_k(W) = mean over domain k's examples of −log softmax(z(x; W))_y, in nats.

    The gradient is in closed form. Its residual r = softmax(z) − e_y, weighed by p_k/N for g and by
    p_k × the example's share of the mini-batch for ĝ, is all that a model pulls back to its
    weights, so that one pass serves f, f̂, g and ĝ. For the layout: examples stand last, classes
    before them, and one matrix product serves all lanes.
    """

    num_parameters: int

    def __init__(self, domains: Domains, batch_size: int, ridge: float) -> None:
        self.ridge = ridge
        self.num_domains, self.num_examples = domains.labels.shape
        self.num_classes = domains.num_classes
        self.batch_size = batch_size
        flat = domains.features.flatten(0, 1)  # [E, d−1], E = K·N examples in all
        self.inputs = torch.cat([flat, torch.ones_like(flat[:, :1])], dim=1)  # [E, d]
        self.inputs_transposed = self.inputs.T.contiguous()
        labels = domains.labels.flatten()
        self.label_rows = labels.view(1, 1, -1)
        self.one_hot = torch.nn.functional.one_hot(labels, self.num_classes).T.to(flat.dtype)

    @abstractmethod
    def start(self, seed: int) -> Tensor:
        """W₁ [P] of a run with that seed."""

    @abstractmethod
    def logits(self, W: Tensor) -> tuple[Tensor, Any]:
        """z [n, C, E] for W [n, P], and what `pull_back` needs of it."""

    @abstractmethod
    def pull_back(self, W: Tensor, kept: Any, residuals: Tensor) -> Tensor:
        """Σ over examples of residual · ∂z/∂W: [n, s, P] for s weighted residuals [n, s, C, E]."""

    def example_losses(self, W: Tensor) -> Tensor:
        """ℓ_i(W) [n, K, N] for W [n, P]."""
        log_p = torch.log_softmax(self.logits(W)[0], dim=1)
        return self._by_domain(self._losses(log_p)) + self._ridge(W).unsqueeze(-1)

    def domain_losses(self, W: Tensor) -> Tensor:
        """f(W) [n, K] for W [n, P]; differentiable."""
        return self.example_losses(W).mean(dim=-1)

    def evaluate(self, W: Tensor, shares: Tensor) -> Point:
        """See `Problem.evaluate`."""
        z, kept = self.logits(W)
        log_p = torch.log_softmax(z, dim=1)
        losses = self._losses(log_p)

        def gradients(p: Tensor) -> tuple[Tensor, Tensor]:
            mixture = p.repeat_interleave(self.num_examples, dim=1)  # p_k beside each example
            weights = torch.stack([mixture / self.num_examples, mixture * shares], dim=1)
            residuals = (log_p.exp() - self.one_hot).unsqueeze(1) * weights.unsqueeze(2)
            g = self.pull_back(W, kept, residuals) + self.ridge * W.unsqueeze(1)
            return g[:, 0], g[:, 1]

        ridge = self._ridge(W)
        batch_losses = self._by_domain(losses * shares).sum(dim=-1) + ridge
        return Point(self._by_domain(losses).mean(dim=-1) + ridge, batch_losses, gradients)

    def _losses(self, log_p: Tensor) -> Tensor:
        rows = self.label_rows.expand(len(log_p), 1, -1)
        return log_p.gather(1, rows).squeeze(1).neg()

    def _ridge(self, W: Tensor) -> Tensor:
        return W.square().sum(dim=-1, keepdim=True) * (self.ridge / 2)

    def _by_domain(self, values: Tensor) -> Tensor:
        return values.view(len(values), self.num_domains, self.num_examples)

    def _times_inputs(self, A: Tensor) -> Tensor:
        """A x for every lane's A [n, a, d]: [n, a, E]."""
        return (A.reshape(-1, A.shape[-1]) @ self.inputs_transposed).view(*A.shape[:-1], -1)

    def _onto_inputs(self, residuals: Tensor) -> Tensor:
        """Σ_i r_i x_iᵀ: [..., a, d] for r [..., a, E]."""
        flat = residuals.reshape(-1, residuals.shape[-1]) @ self.inputs
        return flat.view(*residuals.shape[:-1], -1)


class Logistic(Classifier):
    """Multinomial logistic regression z = W x, W [C, d], x with a 1 for the bias: convex."""

    def __init__(self, domains: Domains, batch_size: int, ridge: float) -> None:
        super().__init__(domains, batch_size, ridge)
        self.num_parameters = self.num_classes * self.inputs.shape[1]

    def start(self, seed: int) -> Tensor:
        """W₁ = 0: Lemma 1's ‖W − W₁‖ ≤ R is then its ‖W‖ ≤ R."""
        return self.inputs.new_zeros(self.num_parameters)

    def logits(self, W: Tensor) -> tuple[Tensor, None]:
        return self._times_inputs(W.view(len(W), self.num_classes, -1)), None

    def pull_back(self, W: Tensor, kept: None, residuals: Tensor) -> Tensor:
        return self._onto_inputs(residuals).flatten(2)

    def smoothness(self) -> float:
        """L: every f_k is L-smooth, L = ½ max_k λ_max(Σ_i x_i x_iᵀ/N).

        The Hessian is mean (diag(π) − ππᵀ) ⊗ xxᵀ, and diag(π) − ππᵀ ≤ ½ I for a distribution π.
        """
        x = self.inputs.view(self.num_domains, self.num_examples, -1)
        second_moments = x.transpose(1, 2) @ x / self.num_examples
        return 0.5 * float(torch.linalg.eigvalsh(second_moments).amax()) + self.ridge


class TanhNetwork(Classifier):
    """One hidden layer of H units, z = V [tanh(U x); 1]: smooth, and not convex in W = (U, V)."""

    def __init__(
        self, domains: Domains, batch_size: int, ridge: float, hidden: int, scale: float = 1.0
    ) -> None:
        super().__init__(domains, batch_size, ridge)
        self.hidden, self.scale = hidden, scale
        self.split = hidden * self.inputs.shape[1]
        self.num_parameters = self.split + self.num_classes * (hidden + 1)

    def start(self, seed: int) -> Tensor:
        """W₁: normal, mean 0, standard deviation `scale`/√(inputs of the layer).

        The same for every seed: the theorems take W₁ as given, their expectation is over batches.
        """
        normal = stream(0, "start").standard_normal(self.num_parameters)
        W = torch.from_numpy(normal) * self.scale
        W[: self.split] /= self.inputs.shape[1] ** 0.5
        W[self.split :] /= (self.hidden + 1) ** 0.5
        return W

    def logits(self, W: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        U = W[:, : self.split].view(len(W), self.hidden, -1)
        V = W[:, self.split :].view(len(W), self.num_classes, -1)
        activity = self._times_inputs(U).tanh()
        return torch.baddbmm(V[:, :, -1:], V[:, :, :-1], activity), (V, activity)

    def pull_back(self, W: Tensor, kept: tuple[Tensor, Tensor], residuals: Tensor) -> Tensor:
        V, activity = kept
        n, s, C, E = residuals.shape
        stacked = residuals.view(n, s * C, E)
        d_weights = (stacked @ activity.transpose(1, 2)).view(n, s, C, self.hidden)
        d_V = torch.cat([d_weights, residuals.sum(dim=-1, keepdim=True)], dim=-1)
        V_transposed = V[:, None, :, :-1].transpose(-1, -2)
        d_hidden = V_transposed @ residuals * (1 - activity.square()).unsqueeze(1)
        return torch.cat([self._onto_inputs(d_hidden).flatten(2), d_V.flatten(2)], dim=-1)
