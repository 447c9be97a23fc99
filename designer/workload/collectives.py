"""Bytes that one GPU sends in a collective, by the standard formulas.

Sources: Thakur, Rabenseifner, Gropp 2005 (ring, recursive halving-doubling); Narayanan et al. 2021, arXiv 2104.04473
(tensor and pipeline parallelism); Korthikanti et al. 2022, arXiv 2205.05198 (sequence parallelism); Rajbhandari et al.
2022, arXiv 2201.05596 (expert parallelism).
"""

ACTIVATION_BYTES = 2


def all_reduce_bytes(size_bytes: float, members: int) -> float:
    """2(g-1)/g S: what each of g members sends to all-reduce S bytes, whatever the bandwidth-optimal algorithm."""
    return 2 * reduce_scatter_bytes(size_bytes, members)


def reduce_scatter_bytes(size_bytes: float, members: int) -> float:
    """(g-1)/g S: what each of g members sends to reduce-scatter, or to all-gather, S bytes."""
    return (members - 1) / members * size_bytes


def halving_doubling_bytes(size_bytes: float, members: int, distance: int) -> float:
    """Bytes that each member exchanges with its partner `distance` away in an all-reduce of S bytes.

    Vector halving with distance doubling, then back (Thakur et al. 2005, Rabenseifner's algorithm): the partner one
    away gets S/2, the next S/4, and so on, twice. `members` is a power of two.
    """
    if members & (members - 1):
        raise ValueError(f"halving-doubling needs a power of two, not {members}")
    return 2 * size_bytes / (2 * distance)


def pipeline_bytes(micro_batch: int, seq_length: float, hidden: int, tp: int) -> float:
    """Activations, b s h 2 / tp, that cross one stage boundary for one micro-batch, in one direction, per GPU.

    With the scatter/gather optimization of Narayanan et al. 2021, section 4.1, each of the tp ranks sends its part.
    """
    return micro_batch * seq_length * hidden * ACTIVATION_BYTES / tp


def expert_dispatch_bytes(tokens: float, experts_per_token: int, hidden: int) -> float:
    """Tokens × k × h × 2: what a GPU hands to the experts of one layer in one dispatch (or combine), itself included.

    Of it (ep-1)/ep leaves the GPU (Rajbhandari et al. 2022).
    """
    return tokens * experts_per_token * hidden * ACTIVATION_BYTES


def tensor_parallel_bytes(micro_batch: int, seq_length: float, hidden: int) -> float:
    """4 all-reduces of b s h 2 bytes a layer and micro-batch: two forward, two backward (Narayanan et al. 2021).

    With sequence parallelism each becomes a reduce-scatter and an all-gather of the same volume (Korthikanti
    et al. 2022). Returned is S summed over the four, to be put into `all_reduce_bytes`.
    """
    return 4 * micro_batch * seq_length * hidden * ACTIVATION_BYTES


def ring_attention_bytes(micro_batch: int, seq_length: float, kv_hidden: float, cp: int, tp: int) -> float:
    """Bytes a GPU sends for ring attention in one layer and micro-batch, forward and backward.

    Each of cp-1 hops passes K and V of s/cp tokens on; backward passes them again with their gradients, three times
    the forward volume in all (Liu et al. 2023, arXiv 2310.01889).
    """
    key_and_value = 2 * micro_batch * (seq_length / cp) * kv_hidden * ACTIVATION_BYTES / tp
    return 3 * (cp - 1) * key_and_value


def ulysses_bytes(micro_batch: int, seq_length: float, hidden: int, kv_hidden: float, cp: int, tp: int) -> float:
    """Bytes a GPU hands to the all-to-alls of one layer and micro-batch, forward and backward, itself included.

    Q, K, V and the output, each once forward and once backward (Jacobs et al. 2023, arXiv 2309.14509).
    """
    return 2 * micro_batch * (seq_length / cp) * (2 * hidden + 2 * kv_hidden) * ACTIVATION_BYTES / tp
