"""The page: answer on top, then cost, what is reused, templates, network, traffic, certificate, racks, origins."""

from collections.abc import Iterator
from importlib.resources import files
from xml.etree.ElementTree import Element

from designer.certify.certificate import Certificate
from designer.certify.read_design import DesignFile
from designer.fabric.fabric import KINDS, LEAF
from designer.report.alike import Anatomy
from designer.report.amounts import count, listing
from designer.report.cost import comparison_section, cost_section
from designer.report.existing import existing_sections
from designer.report.heat import traffic_section
from designer.report.markup import Cell, facts, page, tag
from designer.report.network import network_section
from designer.report.origin import assumptions_section, digest_words, provenance_section
from designer.report.proof import certificate_of, proof_section, verdict_words
from designer.report.racks import racks_section
from designer.report.words import any_shape_words, money, percent, status_words
from designer.units import W_PER_KW, cents


def report_page(file: DesignFile) -> str:
    """A design file as one HTML page that needs nothing but itself: no scripts, no files, no network."""
    anatomy = Anatomy(file.fabric)
    certificate = certificate_of(file)
    sections = [
        cost_section(file),
        *existing_sections(file),
        comparison_section(file),
        network_section(file, anatomy),
        traffic_section(file),
        proof_section(file, certificate),
        racks_section(file),
        assumptions_section(file),
        provenance_section(file),
    ]
    contents = tag("nav", *(_link(item) for item in sections), aria_label="Contents")
    css = files("designer.report").joinpath("page.css").read_text(encoding="utf-8")
    title = f"{file.record.name}: network design"
    return page(title, css, tag("header", *_answer(file, certificate)), contents, tag("main", *sections))


def _link(item: Element) -> Element:
    return tag("a", item[0].text, href=f"#{item.get('id')}")


def _answer(file: DesignFile, certificate: Certificate | None) -> Iterator[Element]:
    """What it costs, what that buys, how far it is proven, and whether it holds."""
    record = file.record
    cost = file.cents("cost_usd") or 0
    yield tag("h1", record.name)
    what = "purchase and energy" if record.objective == "tco" else "purchase"
    yield tag("p", tag("strong", money(cost)), f" {what} of a network for {_cluster(file)}", class_="answer")
    yield tag("p", _network(file), class_="lead")
    yield tag("ul", *_verdicts(file, certificate), class_="verdicts")
    yield facts(_figures(file))


def _cluster(file: DesignFile) -> str:
    cluster = file.cluster
    kinds = [
        f"{count(kind.count, 'server')} of {kind.gpus} {kind.gpu.key} with {kind.nic.key} NICs"
        for kind in cluster.kinds()
    ]
    domains = f"HB domains of {cluster.hb_domain}, {count(cluster.rails, 'rail')}"
    return f"{cluster.gpus:,} GPUs: {listing(kinds)}; {domains}."


def _network(file: DesignFile) -> str:
    counts = file.fabric.counts()
    if counts["spine"] or counts["switches"] == counts["fabrics"]:
        switches = listing([count(counts[tier], tier) for tier in KINDS[LEAF:] if counts[tier]])
    else:
        switches = count(counts["switches"], "switch")
    owned = len(file.fabric.owned)
    there = f" ({owned} of them there already)" if owned else ""
    links = f"{count(counts['links'], 'link')}, {counts['endpoint_links']:,} of them to endpoints"
    return f"{switches}{there} in {count(counts['fabrics'], 'fabric')} and {count(counts['planes'], 'plane')}; {links}."


def _verdicts(file: DesignFile, certificate: Certificate | None) -> Iterator[Element]:
    """Proof of cost, certificate, and whether the file is as it was written: a line each, with a mark in words."""
    record = file.record
    bound = file.cents("lower_bound_usd") or 0
    words = status_words(record.status, record.provenance.termination, record.gap, bound)
    proven = record.status == "optimal"
    yield _verdict("good" if proven else "open", "cost", f"{words}. Searched were: {record.searched}.")
    any_shape = file.cents("any_topology_bound_usd")
    if any_shape is not None:
        yield _verdict("note", "any shape", f"{any_shape_words(file.cents('cost_usd') or 0, any_shape)}.")
    kind, words = verdict_words(file, certificate)
    yield _verdict(kind, "certificate", f"{words}.")
    if file.digest != file.true_digest:
        yield _verdict("bad", "file", f"the digest is {digest_words(file)}.")


def _verdict(kind: str, label: str, words: str) -> Element:
    return tag("li", tag("span", label, class_=f"tag {kind}"), f" {words}")


def _figures(file: DesignFile) -> Iterator[tuple[str, Cell]]:
    """A few numbers beside the cost."""
    record = file.record
    cost, gpus = file.cents("cost_usd") or 0, file.cluster.gpus
    yield "cost per GPU", money(round(cost / gpus))
    if record.energy_usd:
        yield "purchase", money(file.cents("capex_usd") or 0)
        yield f"energy, {file.energy.years:g} years", money(file.cents("energy_usd") or 0)
    if (training := record.training) is not None:
        lost = f"{money(cents(training.lost_usd))}, a step takes {percent(training.step_overhead, 2)} longer"
        yield "GPU time lost", lost
        yield "cost of training", money(cents(training.total_usd))
    yield "power", f"{record.power_w / W_PER_KW:,.1f} kW, switches and modules"
    meeting = [row for row in record.comparison if row.meets]
    if meeting:
        best = min(meeting, key=lambda row: row.cost_usd)
        less = f"{percent(best.saving)} less" if best.saving >= 0 else f"{percent(-best.saving)} more"
        yield "beside the templates that meet", f"{less} than the cheapest, {best.template}"
    pieces = record.counts
    yield "cables and modules", f"{pieces.cables:,} and {pieces.transceivers:,}"
    if record.assumed_usd and record.capex_usd:
        yield "rests on assumed prices", percent(record.assumed_usd / record.capex_usd)
