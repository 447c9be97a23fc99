"""Patterns of names: text with fields in braces; a part in brackets is left out where one of its fields has no value.

`[rail{rail}-]plane{plane}-leaf{index}` names a leaf of one rail `rail3-plane0-leaf07`, and one that serves several
rails `plane0-leaf07`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

_TOKEN = re.compile(r"\[(?P<optional>[^\[\]]*)\]|\{(?P<field>[a-z]+)\}|(?P<text>[A-Za-z0-9._:/@+-]+)")
_SWITCH_FIELDS = ("index", "rail", "plane", "pod", "fabric")
FIELDS = {
    "server": ("index",),
    "management": ("index",),
    "leaf": _SWITCH_FIELDS,
    "spine": _SWITCH_FIELDS,
    "core": _SWITCH_FIELDS,
    "port": ("cage", "lane", "split"),
    "nic": ("rail", "nic", "twin", "port"),
}
"""Fields that the pattern of each kind of name may use."""
_NEEDED = {
    "server": ({"index"},),
    "management": ({"index"},),
    "leaf": ({"index"},),
    "spine": ({"index"},),
    "core": ({"index"},),
    "port": ({"cage", "lane"}, {"cage", "split"}),
    "nic": ({"nic", "port"}, {"rail", "twin", "port"}),
}
Token = tuple[str, str]


class PatternError(ValueError):
    """A pattern of names that cannot be used; the message says why."""


@dataclass(frozen=True)
class Pattern:
    """A pattern of the names of one kind (a key of `FIELDS`)."""

    kind: str
    text: str

    @cached_property
    def parts(self) -> tuple[tuple[bool, tuple[Token, ...]], ...]:
        """Parts as (may be left out, tokens); a token is ("field", name) or ("text", characters).

        Raises:
            PatternError: the text is no pattern of this kind.
        """
        parts = tuple(
            (True, tuple(self._tokens(value))) if kind == "optional" else (False, ((kind, value),))
            for kind, value in self._tokens(self.text)
        )
        used = {value for _, tokens in parts for kind, value in tokens if kind == "field"}
        if unknown := sorted(used - set(FIELDS[self.kind])):
            allowed = ", ".join(FIELDS[self.kind])
            raise PatternError(f"{self.kind}={self.text}: unknown field {unknown[0]!r}; allowed: {allowed}")
        if not any(needed <= used for needed in _NEEDED[self.kind]):
            ways = " or ".join(" and ".join(f"{{{name}}}" for name in sorted(way)) for way in _NEEDED[self.kind])
            raise PatternError(f"{self.kind}={self.text}: names would not differ; needed: {ways}")
        return parts

    def _tokens(self, text: str) -> list[Token]:
        found: list[Token] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or (match.lastgroup == "optional" and not match["optional"]):
                allowed = "letters, digits, . _ : / @ + -, fields in {} and parts in []"
                raise PatternError(f"{self.kind}={self.text}: {text[at]!r} cannot be read; allowed: {allowed}")
            kind = match.lastgroup or ""
            found.append((kind, match[kind]))
            at = match.end()
        return found

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Fields that the pattern uses."""
        return tuple(value for _, tokens in self.parts for kind, value in tokens if kind == "field")

    def render(self, values: Mapping[str, str | None]) -> str:
        """The name for these values of the fields.

        Raises:
            PatternError: a field outside brackets has no value.
        """
        name: list[str] = []
        for optional, tokens in self.parts:
            words = [value if kind == "text" else values[value] for kind, value in tokens]
            present = [word for word in words if word is not None]
            if len(present) == len(words):
                name += present
            elif not optional:
                missing = next(value for kind, value in tokens if kind == "field" and values[value] is None)
                raise PatternError(
                    f"{self.kind}={self.text}: {missing} has no value everywhere; put that part in brackets"
                )
        return "".join(name)


@dataclass(frozen=True)
class Names:
    """The patterns of all kinds.

    Of devices: `index` counts those that the other fields of the pattern do not tell apart, from 0. Of a switch: `rail`
    has a value where it serves one rail of several, `fabric` where it serves several rails and its plane has several
    networks, `pod` where there are pods. Of a port: `cage` from 1, `lane` in it from 0 and `split` from 1, without a
    value where the cage has one port. Of the port of a server: `rail`; `nic` in the server; `twin`, where several NICs
    of a server are on one rail; `port` of the NIC, where it has several.
    """

    server: str = "server{index}"
    management: str = "management{index}"
    leaf: str = "[rail{rail}-][fabric{fabric}-][plane{plane}-][pod{pod}-]leaf{index}"
    spine: str = "[rail{rail}-][fabric{fabric}-][plane{plane}-][pod{pod}-]spine{index}"
    core: str = "[rail{rail}-][fabric{fabric}-][plane{plane}-]core{index}"
    port: str = "swp{cage}[s{lane}]"
    nic: str = "rail{rail}[n{twin}][p{port}]"

    def pattern(self, kind: str) -> Pattern:
        """The pattern of a kind."""
        return Pattern(kind, getattr(self, kind))


def names_from_options(options: Sequence[str]) -> Names:
    """Names with the patterns that options of the form KIND=PATTERN replace.

    Raises:
        PatternError: an option is none.
    """
    kinds = [field.name for field in fields(Names)]
    changes: dict[str, str] = {}
    for option in options:
        kind, equals, text = option.partition("=")
        if not equals or kind not in kinds:
            raise PatternError(f"{option!r} is no KIND=PATTERN; kinds: {', '.join(kinds)}")
        if kind in changes:
            raise PatternError(f"{kind} has two patterns")
        changes[kind] = text
    names = replace(Names(), **changes)
    for kind in kinds:
        _ = names.pattern(kind).parts
    return names
