"""What training costs where the network makes its steps longer: the network, and the GPUs' time lost to it.

A GPU's price pays for all the time that it runs. Where a step takes the part e longer than with every phase at line
rate, as much training as at line rate takes the part e more of GPUs, or of their years: e · GPUs · price is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from designer.instance.instance import Instance
from designer.units import usd

COST_OF_TRAINING = "cost_of_training"


def lost_cents(step_overhead: float, instance: Instance) -> int:
    """Whole cents of GPU time lost to steps that take the part `step_overhead` longer; 0 where GPUs have no price."""
    return round(step_overhead * instance.cluster.gpus * (instance.gpu_price.cents if instance.gpu_price else 0))


@dataclass(frozen=True)
class TrainingCost:
    """Network and time lost, in cents; no Clos network of those searched comes to less than `bound_cents` with its own.

    `gpu_assumed` says that no source published the price of a GPU.
    """

    gpu_cents: int
    gpu_assumed: bool
    step_overhead: float
    lost_cents: int
    total_cents: int
    bound_cents: int

    @property
    def gap(self) -> float:
        """(total - bound) / total; 0 where a network of another family comes to less than the bound."""
        return max(0.0, (self.total_cents - self.bound_cents) / self.total_cents) if self.total_cents else 0.0

    def to_document(self) -> Mapping[str, Any]:
        """The cost as plain data, money in USD."""
        return {
            "gpu_usd": usd(self.gpu_cents),
            "gpu_assumed": self.gpu_assumed,
            "step_overhead": self.step_overhead,
            "lost_usd": usd(self.lost_cents),
            "total_usd": usd(self.total_cents),
            "lower_bound_usd": usd(self.bound_cents),
            "gap": self.gap,
        }
