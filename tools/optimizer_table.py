#!/usr/bin/env python3
"""Writes docs/optimizers.md: the rules' formulas, slots, settings and defaults, read from their headers, and what others
call them, from the list below. With --check, only tells whether the page is current."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
room = root / "include/gradus/update"
page = root / "docs/optimizers.md"

# One entry for each rule: rule (header if it has another name), source, then TensorFlow, PyTorch, Optax: how the same
# numbers are had there, or what differs.
rules = [
    dict(rule="gradient_descent", source="Robbins & Monro 1951",
         tensorflow="`train.GradientDescentOptimizer`", torch="`SGD`", optax="`sgd`"),
    dict(rule="momentum", source="Polyak 1964; Sutskever et al. 2013",
         tensorflow="`train.MomentumOptimizer`; `momentum` is `decay` here",
         torch="`SGD(momentum=, nesterov=)` with dampening 0", optax="`sgd(momentum=, nesterov=)`"),
    dict(rule="adagrad", source="Duchi, Hazan & Singer 2011",
         tensorflow="`train.AdagradOptimizer`",
         torch="`Adagrad` without lr_decay: `.initial_accumulator_value = 0, .epsilon = 1e-10`",
         optax="`adagrad`: epsilon 1e-7 stands under the root there"),
    dict(rule="adagrad_da", source="Duchi, Hazan & Singer 2011",
         tensorflow="`train.AdagradDAOptimizer`; the step is the updater's global_step", torch="–", optax="–"),
    dict(rule="adadelta", source="Zeiler 2012, arXiv:1212.5701",
         tensorflow="`train.AdadeltaOptimizer`",
         torch="`Adadelta`: `.rate = 1, .rho = 0.9, .epsilon = 1e-6`",
         optax="`adadelta`: `.rho = 0.9, .epsilon = 1e-6`"),
    dict(rule="rmsprop", source="Tieleman & Hinton 2012, lecture 6.5",
         tensorflow="`train.RMSPropOptimizer`",
         torch="`RMSprop`: epsilon outside the root, the buffer before the rate, mean square from 0; alike only with "
               "momentum 0 and a small epsilon",
         optax="`rmsprop(momentum=)`: `.initial_rms = 0, .epsilon = 1e-8`"),
    dict(rule="centered_rmsprop", header="rmsprop", source="Graves 2013, arXiv:1308.0850",
         tensorflow="`train.RMSPropOptimizer(centered=True)`", torch="`RMSprop(centered=True)`, differing as rmsprop does",
         optax="`rmsprop(centered=True)`, as rmsprop"),
    dict(rule="adam", source="Kingma & Ba 2015, arXiv:1412.6980",
         tensorflow="`train.AdamOptimizer`: `.sparse = sparse_mode::decay_all`; `contrib.opt.LazyAdamOptimizer`: the "
                    "default, also called `lazy_adam`",
         torch="`Adam`: epsilon beside the corrected root: `adamw{.weight_decay = 0}`",
         optax="`adam`: as PyTorch"),
    dict(rule="ftrl", source="McMahan et al. 2013",
         tensorflow="`train.FtrlOptimizer`; Keras: has `beta` too", torch="–", optax="–"),
    dict(rule="proximal_gradient_descent", source="Duchi & Singer 2009",
         tensorflow="`train.ProximalGradientDescentOptimizer`", torch="–", optax="–"),
    dict(rule="proximal_adagrad", source="Duchi, Hazan & Singer 2011",
         tensorflow="`train.ProximalAdagradOptimizer`", torch="–", optax="–"),
    dict(rule="momentumw", source="Loshchilov & Hutter 2019, arXiv:1711.05101",
         tensorflow="`contrib.opt.MomentumWOptimizer`", torch="–: SGD's weight_decay is added to the gradient",
         optax="–"),
    dict(rule="adamw", source="Loshchilov & Hutter 2019, arXiv:1711.05101",
         tensorflow="`contrib.opt.AdamWOptimizer`: `.form = adamw_form::tensorflow`; Keras: `.form = "
                    "adamw_form::keras, .epsilon = 1e-7, .weight_decay = 0.004`",
         torch="`AdamW`", optax="`adamw`: `.weight_decay = 1e-4`; eps_root is 0"),
    dict(rule="nadam", source="Dozat 2016",
         tensorflow="`contrib.opt.NadamOptimizer`: `.rate = 0.001, .form = nadam_form::tensorflow`; Keras: `.rate = "
                    "0.001, .epsilon = 1e-7, .momentum_decay = 1`",
         torch="`NAdam` (from 2.0); weight_decay is its decoupled_weight_decay",
         optax="`nadam`, `nadamw`: `.form = nadam_form::constant`"),
    dict(rule="adamax", source="Kingma & Ba 2015, section 7.1",
         tensorflow="`contrib.opt.AdaMaxOptimizer`: `.rate = 0.001, .form = adamax_form::tensorflow`; Keras: also "
                    "`.epsilon = 1e-7`",
         torch="`Adamax`", optax="`adamax`"),
    dict(rule="amsgrad", source="Reddi, Kale & Kumar 2018, arXiv:1904.09237",
         tensorflow="`ApplyAdamWithAmsgrad`: `.form = amsgrad_form::raw_eps_hat`; Keras: also `.epsilon = 1e-7`",
         torch="`Adam(amsgrad=True)`", optax="`amsgrad`: `.form = amsgrad_form::corrected`"),
    dict(rule="add_sign", source="Bello et al. 2017, arXiv:1709.07417",
         tensorflow="`contrib.opt.AddSignOptimizer`; sign_decay_fn is a schedule of `sign_decay`", torch="–", optax="–"),
    dict(rule="power_sign", source="Bello et al. 2017, arXiv:1709.07417",
         tensorflow="`contrib.opt.PowerSignOptimizer`; sign_decay_fn is a schedule of `sign_decay`", torch="–",
         optax="–"),
    dict(rule="lars", source="You, Gitman & Ginsburg 2017, arXiv:1708.03888",
         tensorflow="`contrib.opt.LARSOptimizer`; eeta is `trust_coefficient`", torch="–",
         optax="`lars`: `.weight_decay = 0, .form = lars_form::optax`"),
    dict(rule="lamb", source="You et al. 2020, arXiv:1904.00962",
         tensorflow="Keras `Lamb`: `.epsilon = 1e-7`", torch="–", optax="`lamb`"),
    dict(rule="lion", source="Chen et al. 2023, arXiv:2302.06675",
         tensorflow="Keras `Lion`: `.rate = 0.001`", torch="–", optax="`lion`: `.weight_decay = 1e-3`"),
    dict(rule="sophia", source="Liu et al. 2023, arXiv:2305.14342",
         tensorflow="–", torch="– (the authors' SophiaG)",
         optax="`contrib.sophia`: `.rho = 0.01, .weight_decay = 1e-4, .form = sophia_form::optax`; observe after the "
               "step"),
    dict(rule="schedule_free_adamw", header="schedule_free", source="Defazio et al. 2024, arXiv:2405.15682",
         tensorflow="Keras: weights 1/t, `.weight_lr_power = 0`", torch="– (the authors' AdamWScheduleFree)",
         optax="`contrib.schedule_free_adamw`"),
    dict(rule="adafactor", source="Shazeer & Stern 2018, arXiv:1804.04235",
         tensorflow="Keras `Adafactor`: `.rate = 0.001, .form = adafactor_form::relative, .epsilon = 1e-30, .eps1 = 0`",
         torch="`Adafactor`: `.rate = 0.01, .form = adafactor_form::relative`; beta2_decay is -`decay_rate`, eps is "
               "(`eps1`, `min_parameter_rms`), d is `clipping_threshold`",
         optax="`adafactor`; learning_rate=None is `.rate = 1`"),
    dict(rule="muon", source="Jordan et al. 2024, kellerjordan.github.io/posts/muon",
         tensorflow="Keras `Muon`: `.rate = 0.001, .form = muon_form::keras`, about `.fallback = {.rate_scale = "
                    "0.1, .epsilon = 1e-7, .weight_decay = 0.04}`",
         torch="the authors' Muon: `muon{}`", optax="`contrib.muon`: `.form = muon_form::optax, .fallback = "
                                                            "{.use_nesterov = true}`"),
    dict(rule="soap", source="Vyas et al. 2024, arXiv:2409.11321", tensorflow="–", torch="– (the authors' SOAP)",
         optax="–"),
]


def body(text, rule):
    """The lines of `struct rule`."""
    found = re.search(rf"^struct {rule} \{{\n(.*?)^\}};", text, re.S | re.M)
    if not found:
        sys.exit(f"no struct {rule}")
    return found[1]


def formula(text):
    """The indented lines of the header's comment, as far as they come without a blank line of prose."""
    lines = []
    for line in text.split("#pragma once")[0].splitlines():
        if line.startswith("//   ") and not line.startswith("//   u."):
            lines.append(line[5:].rstrip())
    return lines


def settings(struct):
    """(name, default, words) of each setting."""
    out = []
    kinds = r"(?:std::optional<\w+>|double|bool|std::int64_t|std::size_t|int|\w+_(?:mode|form|l2|fallback|coefficients)|std::array<[^;=]*>)"
    for kind, name, value, words in re.findall(
            rf"^  ({kinds}) (\w+) = ([^;]*);(?:\s*// (.*))?$", struct, re.M):
        if name == "default_rate":
            continue
        out.append([name, value, words])
    default = re.search(r"default_rate = ([^;]*);", struct)
    if default and out and out[0][0] == "rate":
        out[0][1] = default[1]
    for s in out:
        s[1] = {"{}": "required" if s[0] == "rate" else "unset", "std::numbers::e": "e"}.get(s[1], s[1])
        s[1] = re.sub(r"\.0$", "", s[1])
    return out


def slots(struct, found):
    """`name` from its initial value."""
    known = {name: value for name, value, _ in found}
    lines = re.search(r"slots\(\) const \{(.*?)\n?\s*\}\n", struct, re.S)
    if not lines:
        return "none"
    out = []
    for name, value in re.findall(r'slot\{(?:\.name = )?([^,]+),\s*([^}]+)\}', lines[1]):
        names = " or ".join(f"`{n}`" for n in re.findall(r'"(\w+)"', name))
        if "starts_as_variable" in value:
            value = "the variable"
        elif value in known:
            value = f"`{value}`"
        else:
            value = re.sub(r"\.0$", "", value)
        out.append(f"{names}: {value}")
    return "<br>".join(out)


def code(lines):
    def cell(line):
        return "`" + re.sub(r"\s{2,}", "  ", line).replace("|", "\\|") + "`"

    return "<br>".join(cell(line) for line in lines if line.strip())


texts = {}
out = ["# Optimizers", ""]
out.append(
    "Every rule, in its header's own words (`include/gradus/update/rules/<rule>.hpp` has the whole story: sparse gradients, "
    "differences, where epsilon stands).\nGenerated by `tools/optimizer_table.py`; edit the headers or the list there. "
    "How to use a rule: [update](rooms/update.md).\n")
out.append("| rule | formula | slots and initial values | defaults | source | TensorFlow 1.x, Keras | PyTorch | Optax |")
out.append("|---|---|---|---|---|---|---|---|")
sections = []
for r in rules:
    header = r.get("header", r["rule"])
    text = texts.setdefault(header, (room / "rules" / f"{header}.hpp").read_text())
    struct = body(text, r["rule"])
    own = settings(struct)
    if r["rule"] != header and not own[0][2].startswith("step"):  # the words stand with the header's first rule
        words = {n: w for n, _, w in settings(body(text, header))} if f"struct {header} {{" in text else {}
        own = [[n, v, words.get(n, w) or w] for n, v, w in own]
    defaults = ", ".join(f"{n} {re.sub(r'^.*::', '', v)}" for n, v, _ in own if v != "unset" and v != "{}")
    lines = formula(text)
    shown = code(lines) if not (r["rule"] != header and header in [x["rule"] for x in rules]) else "the same, centered"
    out.append(f"| `{r['rule']}` | {shown} | {slots(struct, own)} | {defaults} | {r['source']} | {r['tensorflow']} | "
               f"{r['torch']} | {r['optax']} |")
    sections.append(f"### {r['rule']}\n")
    name = re.search(r'name = "(\w+)"', struct)[1]
    kept = slots(struct, own).count("<br>") + 1 if slots(struct, own) != "none" else 0
    names = ", ".join(f"`<variable>/{name}" + (f"_{k}`" if k else "`") for k in range(kept))
    sections.append(f"`#include <gradus/update/rules/{header}.hpp>`; in checkpoints " +
                    (f"its slots are {names}.\n" if kept else "it has no slots.\n"))
    sections.append("| setting | default | |\n|---|---|---|")
    for n, v, w in own:
        sections.append(f"| `{n}` | {v} | {w.replace('|', chr(92) + '|')} |")
    sections.append("")
out += ["", "In the formulas theta is the variable, g its gradient, t the number of the step from 1. TensorFlow "
        "rounds settings\nto float32 before it uses them, even on float64 variables, so its float64 runs differ from these "
        "by about 6e-8. Clips, "
        "schedules, averages and\nchains, which stand beside a rule, are in [update](rooms/update.md).", "", "## Settings", ""] + sections
text = "\n".join(out).rstrip() + "\n"
if "--check" not in sys.argv:
    page.write_text(text)
elif not page.exists() or page.read_text() != text:
    sys.exit("docs/optimizers.md is not what the headers say; run tools/optimizer_table.py")
listed = re.search(r"rule_list<(.*?)>;", (room / "rules.hpp").read_text(), re.S)[1]
missing = {n.strip() for n in listed.split(",")} ^ {r["rule"] for r in rules}
if missing:
    sys.exit(f"tools/optimizer_table.py and update/rules.hpp differ in {', '.join(sorted(missing))}")
