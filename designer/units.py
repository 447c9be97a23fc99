"""Every conversion factor between the units of this package.

Rates are in Gb/s (10^9 bit/s, one direction), sizes in bytes, money in whole cents inside and in USD at the border.
"""

from decimal import ROUND_HALF_UP, Decimal

BITS_PER_BYTE = 8
BITS_PER_GBIT = 10**9
CENTS_PER_USD = 100
HOURS_PER_YEAR = 8760
W_PER_KW = 1000


def transfer_s(size_bytes: float, rate_gbps: float) -> float:
    """Seconds that `size_bytes` take at `rate_gbps`."""
    return size_bytes * BITS_PER_BYTE / (rate_gbps * BITS_PER_GBIT)


def cents(amount_usd: float | Decimal | str) -> int:
    """Whole cents of an amount in USD, halves rounded up."""
    return int((Decimal(str(amount_usd)) * CENTS_PER_USD).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def usd(amount_cents: int) -> float:
    """USD of an amount in cents."""
    return amount_cents / CENTS_PER_USD


def energy_cents(power_w: float, years: float, usd_per_kwh: float, pue: float) -> int:
    """Whole cents for the energy of `power_w` drawn all the time for `years`, cooling included by `pue`."""
    kwh = power_w / W_PER_KW * HOURS_PER_YEAR * years * pue
    return cents(kwh * usd_per_kwh)
