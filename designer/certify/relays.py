"""What it costs to send from rail to rail over the HB domain, where no spine joins the rails.

In a rail-only network the all-to-all of expert parallelism between rails takes two hops: over the scale-up network to
the GPU of the domain on the receiver's rail, then over that rail. Source: Wang et al. 2023, arXiv 2307.12169, on
all-to-all traffic of MoE models.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RelayOverhead:
    """Extra time of an all-to-all over relays, as a part of its time on a network that joins the rails.

    `serial`: the hop inside the domain comes before the one on the rail; `bound` is its limit for large domains;
    `overlapped`: both at once in a pipeline, where the scale-up network is the faster one.
    """

    serial: float
    bound: float
    overlapped: float


def relay_overhead(hb_domain: int, nic_gbps: float, scale_up_gbps: float) -> RelayOverhead:
    """Overhead of an all-to-all from rail to rail over domains of K GPUs: (K-1)/K C_S/C_F, below C_S/C_F.

    A GPU hands (K-1)/K of what it sends, all but what is for its own rail, to its peers at the scale-up rate C_F; its
    NIC sends at C_S. Rates are in Gb/s, one direction. With both hops at once the slower one sets the time.

    Raises:
        ValueError: an empty domain, or a rate that is not positive.
    """
    if hb_domain < 1 or nic_gbps <= 0 or scale_up_gbps <= 0:
        raise ValueError(f"a domain of {hb_domain} GPUs, {nic_gbps} Gb/s NICs and {scale_up_gbps} Gb/s scale-up")
    bound = nic_gbps / scale_up_gbps
    serial = (hb_domain - 1) / hb_domain * bound
    return RelayOverhead(serial, bound, max(0.0, serial - 1.0))
