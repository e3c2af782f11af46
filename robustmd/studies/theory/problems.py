"""The study's problems: K losses f(W), for many W at once, in float64."""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor
from torch.func import jacrev

from robustmd.training.data import stream


class Problem(ABC):
    """K losses f(W) of a model with P parameters.

    Attributes:
        name: for the tables.
        num_domains: K.
        num_examples: N, in every domain.
        batch_size: m, drawn from every domain for f̂, i.i.d. with replacement.
    """

    name: str
    num_domains: int
    num_examples: int
    batch_size: int

    @abstractmethod
    def start(self, seed: int) -> Tensor:
        """W₁ [P] of a run with that seed."""

    @abstractmethod
    def evaluate(self, W: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """f(W) [n, K] on all examples, and f̂(W) [n, K] on mini-batches; differentiable.

        Args:
            W: [n, P], a model for each lane.
            shares: [n, K·N], each example's share of its domain's mini-batch: how often it was
                drawn, divided by m. The K·N examples are ordered by domain.
        """


class Parabolas(Problem):
    """f(w) = ((w − 1)², (w + 1)²), a model of one number, without noise.

    The counterexample to Theorem 4 as printed: F(w) = max_k f_k(w) = (|w| + 1)² has a kink at its
    minimum, w = 0, and ‖∇F(w)‖² = 4(|w| + 1)² ≥ 4 everywhere else, so that no step size brings its
    mean below 4. With the L2 regularizer, F(w) = max_p p·f(w) − (λ/2)‖p − q‖², which is smooth, it
    goes to 0.
    """

    name = "two parabolas"
    num_domains, num_examples, batch_size = 2, 1, 1

    def start(self, seed: int) -> Tensor:
        """w₁ uniform on [−1, 1]."""
        return torch.tensor([stream(seed, "start").uniform(-1.0, 1.0)], dtype=torch.float64)

    def evaluate(self, W: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """f̂ is f."""
        losses = (W - W.new_tensor([1.0, -1.0])).square()
        return losses, losses


class Classifier(Problem):
    """f_k(W) = mean over domain k's examples of −log softmax(z(x; W))_y + (ridge/2)‖W‖², in nats.

    Gaussian classes, C of them, whose means differ between domains by d (0: not at all):

        x = s ((1 − d) a_y + d b_{k,y}) + noise,    a, b, noise standard normal

    A tenth of the labels is drawn anew, so that no domain can be separated and every f_k has a
    minimum. No model suits all domains: the worst case is a compromise. docs/theory.md says how the
    defaults were chosen. Examples stand last, classes before them.
    """

    def __init__(
        self,
        num_domains: int,
        num_examples: int = 40,
        num_classes: int = 2,
        *,
        batch_size: int = 40,
        ridge: float = 0.2,
        seed: int = 6,
        disagreement: float = 1.0,
        separation: float = 1.5,
    ) -> None:
        K, N, C = num_domains, num_examples, num_classes
        self.num_domains, self.num_examples, self.num_classes = K, N, C
        self.batch_size, self.ridge = batch_size, ridge
        rng = stream(seed, "domains")
        shared, own = rng.standard_normal((C, 2)), rng.standard_normal((K, C, 2))
        means = separation * ((1 - disagreement) * shared + disagreement * own)
        drawn = np.tile(np.arange(N) % C, (K, 1))
        features = means[np.arange(K)[:, None], drawn] + rng.standard_normal((K, N, 2))
        flipped = rng.random(drawn.shape) < 0.1
        labels = torch.from_numpy(np.where(flipped, rng.integers(C, size=drawn.shape), drawn))
        x = torch.from_numpy(features).flatten(0, 1)  # [E, 2], E = K·N examples in all
        self.inputs = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)  # [E, d]
        self.label_rows = labels.view(1, 1, -1)

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """P."""

    @abstractmethod
    def logits(self, W: Tensor) -> Tensor:
        """z [n, C, E] for W [n, P]."""

    def evaluate(self, W: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """See `Problem.evaluate`."""
        log_p = torch.log_softmax(self.logits(W), dim=1)
        each = log_p.gather(1, self.label_rows.expand(len(W), 1, -1)).squeeze(1).neg()  # [n, E]
        ridge = W.square().sum(dim=-1, keepdim=True) * (self.ridge / 2)
        shape = len(W), self.num_domains, self.num_examples
        return each.view(shape).mean(dim=-1) + ridge, (each * shares).view(shape).sum(-1) + ridge

    def losses(self, W: Tensor) -> Tensor:
        """f(W) [K] for W [P]; differentiable."""
        return self.evaluate(W.unsqueeze(0), self.inputs.new_zeros(1))[0][0]


class Logistic(Classifier):
    """Multinomial logistic regression z = W x, W [C, d], x with a 1 for the bias: convex."""

    name = "logistic regression"

    @property
    def num_parameters(self) -> int:
        return self.num_classes * self.inputs.shape[1]

    def start(self, seed: int) -> Tensor:
        """W₁ = 0: Lemma 1's ‖W − W₁‖ ≤ R is then its ‖W‖ ≤ R."""
        return self.inputs.new_zeros(self.num_parameters)

    def logits(self, W: Tensor) -> Tensor:
        return W.view(len(W), self.num_classes, -1) @ self.inputs.T

    def losses_and_jacobian(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(W) [K] and J [K, P], its rows ∇f_k, for W [P]."""
        model = torch.from_numpy(np.ascontiguousarray(W))
        return self.losses(model).numpy(), jacrev(self.losses)(model).numpy()

    def smoothness(self) -> float:
        """L: every f_k is L-smooth, L = ½ max_k λ_max(Σ_i x_i x_iᵀ/N).

        The Hessian is mean (diag(π) − ππᵀ) ⊗ xxᵀ, and diag(π) − ππᵀ ≤ ½ I for a distribution π.
        """
        x = self.inputs.view(self.num_domains, self.num_examples, -1)
        second_moments = x.transpose(1, 2) @ x / self.num_examples
        return 0.5 * float(torch.linalg.eigvalsh(second_moments).amax()) + self.ridge


class TanhNetwork(Classifier):
    """One hidden layer of 3 units, z = V [tanh(U x); 1]: smooth, and not convex in W = (U, V)."""

    name = "tanh network"
    hidden = 3

    @property
    def split(self) -> int:
        """Where V begins."""
        return self.hidden * self.inputs.shape[1]

    @property
    def num_parameters(self) -> int:
        return self.split + self.num_classes * (self.hidden + 1)

    def start(self, seed: int) -> Tensor:
        """W₁: normal, mean 0, standard deviation 1/√(inputs of the layer).

        The same for every seed: the theorems take W₁ as given, their expectation is over batches.
        """
        W = torch.from_numpy(stream(0, "start").standard_normal(self.num_parameters))
        W[: self.split] /= self.inputs.shape[1] ** 0.5
        W[self.split :] /= (self.hidden + 1) ** 0.5
        return W

    def logits(self, W: Tensor) -> Tensor:
        U = W[:, : self.split].view(len(W), self.hidden, -1)
        V = W[:, self.split :].view(len(W), self.num_classes, -1)
        activity = (U @ self.inputs.T).tanh()
        return torch.baddbmm(V[:, :, -1:], V[:, :, :-1], activity)
