#!/usr/bin/env python3
"""Draws training programs at random and checks what has to hold of any of them, where features cross that no test names together.

usage: crossings.py COMPILER INCLUDE [--seed N] [--programs N] [--keep DIR] [--flags "..."] [--link "..." | --build DIR]

A program has a model of drawn layers, a rule or a chain or groups of rules, and drawn policies. It trains in several ways, and all must
leave the same checkpoint, bit for bit, as one undisturbed call of train:

  resumed       the run ends after some steps, and another trainer goes on in the same folder
  reordered     the policies in another order
  calls         several calls of train
  interpreted   the model as a function that the program runs
  threads       two threads
  gates         another gate (a policy that measures all gradients has its own order anyway)
  snapshot      checkpoints written in another way
  supervisor    make_supervisor and a loop of the program's own
  estimator     make_estimator and an input function
  handed        a supervisor begins, an estimator goes on, a trainer of an interpreted model ends
  evaluated, validated, observed   evaluations and predictions between calls and in them; summaries, logs, saves at every step
  codec         another format, resumed
  session, model_fn, static   a session with an optimizer, an estimator with a model function, a static stepper
  cluster       workers and one or two parameter servers, or all_reduce, beside microbatch{workers}; again: resumed, with other servers
  simulated     such a cluster in virtual time, with faults

Each is left out where the documentation says that it does not apply. A program that the library refuses, when it is compiled or when it
starts, must be refused with one sentence of the library; crossings.py prints it, since a refusal that nobody expects is a fault as well."""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent


class Draw:
    """A program: its model, its policies and what they exclude."""

    def __init__(self, seed, all_laws=False):
        self.all_laws = all_laws
        self.r = r = random.Random(seed)
        self.seed = seed
        self.rows = self.norm = self.dropout = self.fixed_rows = False
        self.model = self.draw_model()
        self.draw_policies()
        self.steps = r.randint(6, 14)
        self.stop = r.randint(1, self.steps - 1)

    def chance(self, share):
        return self.r.random() < share

    # --- the model ---

    def draw_model(self):
        r, lines = self.r, []
        self.image = self.chance(0.3)
        width = 16 if self.image else 13
        self.width = width
        if self.image:
            lines.append('value h = reshape(x, {-1, 4, 4, 1});')
            lines.append(f'h = {self.activation()}(conv2d(h, {{.filters = {r.randint(1, 5)}, .kernel_size = {r.choice([1, 2, 3])}, '
                         f'.padding = padding::same, .name = "conv"}}));')
            if self.chance(0.5):
                lines.append(f'h = {r.choice(["max_pool", "avg_pool"])}(h, {{.pool_size = 2, .strides = {r.choice([1, 2])}}});')
            if self.chance(0.4) and not self.norm:
                self.norm = True
                lines.append(f'h = batch_norm(h, {{.momentum = {r.choice([0.9, 0.5])}}});')
            lines.append('h = flatten(h);')
        elif self.chance(0.25):
            lines.append('value h = dense(reshape(x, {-1, 13, 1}), {.units = 8, .name = "letter"});')
            lines.append(f'h = h + multi_head_attention(layer_norm(h), {{.heads = {r.choice([1, 2, 4])}, .causal = {r.choice(["true", "false"])}, '
                         f'.dropout_rate = {r.choice(["0", "0.1"])}}});')
            lines.append('h = flatten(h);')
        else:
            lines.append('value h = x;')
        if self.chance(0.45):
            self.rows = True
            lines.append(f'h = concat({{h, flatten(embedding(ids, {{.input_dim = 9, .output_dim = {r.randint(1, 6)}}}))}}, 1);')
        for i in range(r.randint(0, 2)):
            constraint = r.choice(['', '', '', '', ', .kernel_constraint = max_norm(0.8)', ', .kernel_constraint = non_neg'])
            lines.append(f'h = {self.activation()}(dense(h, {{.units = {r.choice([3, 8, 16, 17, 24])}, .name = "dense_{i}", '
                         f'.use_bias = {r.choice(["true", "true", "false"])}{constraint}}}));')
            extra = r.random()
            if extra < 0.2:
                lines.append(f'h = layer_norm(h, {{.name = "layer_norm_{i}"}});')
            elif extra < 0.35 and not self.norm:
                self.norm = True
                lines.append('h = batch_norm(h);')
            elif extra < 0.55:
                self.dropout = True
                lines.append(f'h = dropout(h, {r.choice([0.25, 0.5])});')
        lines.append('const value logits = dense(h, {.units = 5, .name = "logits"});')
        loss = r.choice(['reduce_mean(sparse_softmax_cross_entropy(logits, y))',
                         'reduce_mean(square(logits - one_hot(y, 5)))',
                         'reduce_mean(sparse_softmax_cross_entropy(logits, y)) + 0.01 * reduce_mean(square(logits))'])
        lines.append(f'const value loss = {loss};')
        if self.chance(0.3):
            lines.append('g.summary_scalar("loss", loss);')
        metrics = '.metrics = {{"accuracy", metrics::accuracy(y, logits)}}, ' if self.chance(0.5) else ''
        lines.append(f'return model_spec{{.loss = loss, {metrics}.predictions = {{{{"logits", logits}}}}}};')
        return '\n'.join('  ' + line for line in lines)

    def activation(self):
        return self.r.choice(['relu', 'tanh', 'sigmoid', 'gelu', 'elu', 'softplus'])

    # --- the policies ---

    rules = ['gradient_descent', 'momentum', 'adagrad', 'adagrad_da', 'adadelta', 'rmsprop', 'centered_rmsprop', 'adam', 'ftrl',
             'proximal_gradient_descent', 'proximal_adagrad', 'momentumw', 'adamw', 'nadam', 'adamax', 'amsgrad', 'add_sign', 'power_sign',
             'lars', 'lamb', 'lion', 'sophia', 'schedule_free_adamw', 'adafactor', 'muon', 'soap']
    # A setting of each that a schedule may set, and values around its default.
    settings = {'adam': ('beta1', 0.85, 0.9), 'adamw': ('weight_decay', 0.0, 0.1), 'momentum': ('decay', 0.5, 0.9),
                'rmsprop': ('decay', 0.8, 0.9), 'ftrl': ('l2', 0.0, 0.1), 'nadam': ('beta2', 0.9, 0.99), 'lamb': ('beta1', 0.8, 0.9),
                'lion': ('beta2', 0.9, 0.99), 'adamax': ('beta2', 0.9, 0.99), 'amsgrad': ('beta1', 0.8, 0.9), 'lars': ('momentum', 0.5, 0.9),
                'sophia': ('rho', 0.03, 0.05), 'adadelta': ('rho', 0.9, 0.95), 'adagrad_da': ('l2', 0.0, 0.1), 'soap': ('beta1', 0.8, 0.95),
                'proximal_adagrad': ('l1', 0.0, 0.001), 'momentumw': ('weight_decay', 0.0, 0.1), 'add_sign': ('alpha', 0.8, 1.0),
                'muon': ('momentum', 0.9, 0.95), 'adafactor': ('weight_decay', 0.0, 0.01)}
    whole_tensors = {'adafactor', 'muon', 'soap'}

    def rule(self, rated):
        name = self.r.choice(self.rules)
        self.named.append(name)
        rate = self.r.choice([0.1, 0.05, 0.01]) if name not in {'lion', 'muon', 'soap', 'sophia'} else 0.01
        extra = ''
        if name in {'momentum', 'rmsprop'} and self.chance(0.4):
            extra = ', .use_nesterov = true' if name == 'momentum' else ', .momentum = 0.5'
        if name == 'ftrl' and self.chance(0.5):
            extra = ', .l1 = 0.01, .l2 = 0.01'
        if name == 'adam' and self.chance(0.3):
            extra = ', .sparse = sparse_mode::decay_all'
        return f'{name}{{.rate = {rate}{extra}}}' if rated else f'{name}{{{extra.lstrip(", ")}}}'

    def schedule(self):
        return self.r.choice(['constant{0.03}', 'exponential_decay{.initial = 0.05, .decay_steps = 3, .decay_rate = 0.9}',
                              'exponential_decay{.initial = 0.05, .decay_steps = 4, .decay_rate = 0.5, .staircase = true}',
                              'cosine_decay{.initial = 0.05, .decay_steps = 10, .alpha = 0.1}',
                              'linear_warmup{.peak = 0.05, .warmup_steps = 4}',
                              'linear_warmup{.peak = 0.05, .warmup_steps = 3}.then(cosine_decay{.initial = 0.05, .decay_steps = 8, .alpha = 0.1})',
                              'piecewise_constant{{3, 7}, {0.05, 0.02, 0.01}}', 'noam{.d_model = 16, .warmup_steps = 4}',
                              '[](std::int64_t step) { return 0.05 / (1.0 + static_cast<double>(step)); }'])

    def draw_policies(self):
        r, self.named, self.policies = self.r, [], []
        scheduled = self.chance(0.5)
        shape = r.random()
        if shape < 0.55:
            rule = self.rule(not scheduled)
        elif shape < 0.8:
            parts = []
            if self.chance(0.5):
                parts.append(r.choice(['clip_by_norm{0.5}', 'clip_by_value{-0.1, 0.1}', 'clip_by_average_norm{0.05}', 'clip_by_global_norm{0.7}']))
            if self.chance(0.5):
                parts.append(r.choice(['weight_decay{0.01}', 'weight_decay{0.01, decay_mode::coupled}', 'weight_decay{0.02, rank_two{}}']))
            parts.append(self.rule(not scheduled))
            if self.chance(0.5):
                parts.append(f'lookahead{{.every = {r.choice([2, 3])}, .alpha = 0.5}}')
            rule = 'chain{' + ', '.join(parts) + '}'
        else:
            first = r.choice(['matching("bias$")', 'rank_two{}', 'named{"logits/"}'])
            groups = [f'on{{{first}, {self.rule(not scheduled)}{r.choice(["", ", 2.0", ", 0.5"])}}}', self.rule(not scheduled)]
            rule = 'multi{' + ', '.join(groups) + '}'
        self.policies.append(rule)
        if scheduled:
            self.policies.append(self.schedule())
        if self.chance(0.45):
            self.policies.append(r.choice(['clip_by_global_norm{0.5}', 'clip_by_global_norm{0.5}', 'clip_by_norm{0.5}', 'clip_by_value{-0.05, 0.05}',
                                           'clip_by_average_norm{0.05}', 'adaptive_clip{0.05}']))
        if self.chance(0.45):
            self.policies.append(r.choice(['exponential_moving_average{.decay = 0.9}', 'exponential_moving_average{.decay = 0.99, .num_updates = true}',
                                           'stochastic_weight_average{.start = 3, .every = 2}']))
        self.accumulates = self.chance(0.25)
        if self.accumulates:
            self.policies.append(f'accumulate{{{r.choice([2, 3])}}}')
        if self.chance(0.2):
            self.policies.append('gradient_noise{.variance = 0.01}')
        if self.chance(0.25):
            self.policies.append(r.choice(['freeze{named{"logits/bias"}}', 'freeze{matching("bias$")}', 'freeze{rank_two{}}']))
        scale = r.random()
        if scale < 0.12:
            self.policies.append('dynamic_loss_scale{.initial = 1024, .growth_interval = 4}')
        elif scale < 0.2:
            self.policies.append('static_loss_scale{128}')
        elif scale < 0.35:
            self.policies.append(r.choice(['not_finite::skip{}', 'not_finite::raise{}']))
        name = self.named[0]
        if self.chance(0.35) and name in self.settings and self.named.count(name) == 1:
            setting, low, high = self.settings[name]
            self.policies.append(f'vary<&{name}::{setting}>(polynomial_decay{{.initial = {high}, .decay_steps = 9, .end = {low}}})')
        self.precise = not self.chance(0.12)
        if not self.precise:
            self.policies.append(r.choice(['mixed_precision<bfloat16>{}', 'mixed_precision<float16>{}']))
        if self.chance(0.1):
            self.policies.append('activations<bfloat16>{}')
        if self.chance(0.12):
            self.policies.append('recompute<2>{}')
        if self.chance(0.15):
            self.policies.append(r.choice(['portable{}', 'approximate{}', 'subnormals::keep{}']))
        self.micro = self.chance(0.2) and not self.rows and not self.norm
        if self.micro:
            self.policies.append(f'microbatch{{{r.choice([2, 3])}}}')
        self.batch = 12

    # --- the program ---

    def text(self):
        r = self.r
        policies = ', '.join(self.policies)
        order = self.policies[:]
        r.shuffle(order)
        gate = r.choice(['gate_none{}', 'gate_graph{}'])
        snapshot = r.choice(['copy_snapshot{}', 'rolling_snapshot{}', 'fork_snapshot{}'])
        without_micro = ', '.join(p for p in self.policies if not p.startswith('microbatch'))
        servers = r.choice([1, 2])
        workers = 1 if self.rows or self.norm else r.choice([1, 2, 2, 3])
        alone = without_micro + (f', microbatch{{{workers}}}' if workers > 1 else '')
        how = r.choice(['sync_replicas{}', 'sync_replicas{}', 'ssp{0}', 'all_reduce{}'])
        ps = 0 if how == 'all_reduce{}' else servers
        averaged = 'true' if any('average' in p and 'clip' not in p for p in self.policies) else 'false'
        connection = r.choice(['connected{here}', 'connected{here, fixed_size_partitioner{.shards = 2}}']) if ps else 'connected{here}'
        codec = r.choice(['safetensors{}', 'npz{}', 'tensor_bundle{}', 'flat_binary{}'])
        of_trainers = ('mixed', 'activations', 'recompute', 'microbatch', 'portable', 'approximate', 'subnormals')
        of_graph = [p for p in self.policies if not p.startswith(of_trainers)]
        laws = ['resumed', 'reordered', 'calls', 'interpreted', 'threads', 'gates', 'snapshot', 'supervisor', 'estimator', 'evaluated', 'validated',
                'observed', 'codec', 'handed']
        if not self.norm and not any(p.startswith(('dynamic', 'static', 'not_finite')) for p in of_graph):
            laws += ['session', 'session', 'model_fn', 'model_fn']
        if not self.rows and not any(w in p for p in of_graph for w in ('adafactor', 'muon', 'soap', 'adaptive_clip', 'gradient_noise')):
            laws += ['static', 'static']
        laws += ['cluster', 'cluster', 'again']
        if not self.norm:  # the means of a killed chief are those of its last checkpoint (docs/cluster.md)
            laws += ['simulated', 'simulated']
        wanted = set(laws) if self.all_laws else set(r.sample(laws, 7))
        recovery = ', recovery::log{.directory = logs_of(name)}' if ps and self.chance(0.5) else ''
        return f'''// Drawn by tests/crossings/crossings.py with --seed {self.seed}.
#include "program.hpp"
using namespace gradus;
constexpr model_spec net_of(graph& g, value x, value y, value ids) {{
  (void)ids;
{self.model}
}}
inline constexpr auto net = [](graph& g) {{
  return net_of(g, g.placeholder("x", {{batch, {self.width}}}), g.placeholder("y", {{batch}}, int32), g.placeholder("ids", {{batch, 2}}, int32));
}};
constexpr int width = {self.width}, steps = {self.steps}, stop = {self.stop}, size = {self.batch}, servers = {ps}, workers = {workers};

#define POLICIES {policies}
#define REORDERED {', '.join(order)}
#define OF_A_TASK {without_micro}
#define ALONE {alone}
#define OF_A_GRAPH {', '.join(of_graph)}
#define AVERAGED {averaged}
#define CODEC {codec}
{''.join(f'#define LAW_{law}{chr(10)}' for law in sorted(wanted))}#define GATE {gate}
#define SNAPSHOT {snapshot}
#define CONNECTION {connection}
#define TASK_DOOR {r.choice(['trainer', 'estimator', 'supervisor'])}
#define HOW {how}{recovery}
#define SEED {self.seed}
#include "laws.hpp"
'''


def of_build(folder):
    """The flags and objects with which a configured and built tree compiles and links tests of its own: gradus::compiled."""
    entries = [e for e in json.loads((folder / 'compile_commands.json').read_text()) if '/test_compiled.dir/' in e['command']]
    if not entries:
        sys.exit(f'{folder}: no compiled part of the library is built there; give --flags and --link')
    entry = max(entries, key=lambda e: e['file'].endswith('/run.cpp'))  # kernels.cpp has flags of its own
    words = entry['command'].split()
    flags, skip = [], False
    for word, following in zip(words[1:], words[2:] + ['']):
        if skip or word in ('-c', '-o', '-include', '-MF', '-MT', '-MQ'):
            skip = word in ('-o', '-include', '-MF', '-MT', '-MQ')
        elif not word.startswith(('-W', '-std', '-Winvalid', '-MD', '-g')) and word != entry['file']:
            flags.append(word.replace('\\"', '"'))
    objects = sorted(str(o) for o in (folder / 'tests/CMakeFiles/test_compiled.dir').rglob('*.o'))
    return flags, objects + ['-lz']


def run(command, seconds, **kwargs):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, errors='replace', **kwargs)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, f'took more than {seconds} s'


def check(compiler, include, seed, flags, link, keep, all_laws):
    draw = Draw(seed, all_laws)
    name = f'crossing_{seed}'
    source = keep / f'{name}.cpp'
    source.write_text(draw.text())
    binary = keep / name
    def build():
        return run([compiler, '-std=gnu++20', *flags, f'-I{include}', f'-I{here}', str(source), '-o', str(binary), *link, '-pthread'], 900)
    code, said = build()
    alone = ''
    if code != 0 and (first := re.search(r'error: .*gradus: .*', said)):
        alone = f'no cluster ({first.group(0)[:160]}); '
        source.write_text(re.sub(r'#define LAW_(cluster|simulated|again)\n', '', source.read_text()))
        code, said = build()
    if code != 0:
        (keep / f'{name}.log').write_text(said)
        first = next((line for line in said.splitlines() if 'error: ' in line), said[:200])
        sentence = re.search(r'gradus: .*', first)
        return ('refused', sentence.group(0)) if sentence else ('FAILED', f'does not compile: {first} ({keep / name}.log)')
    code, said = run([str(binary)], 600, cwd=keep)
    (keep / f'{name}.log').write_text(said)
    binary.unlink()
    if code == 3:
        return 'refused', said.strip().splitlines()[-1]
    return ('ok' if code == 0 else 'FAILED'), alone + ' | '.join(line for line in said.strip().splitlines() if not line.startswith('gradus: warning'))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('compiler')
    p.add_argument('include')
    p.add_argument('--seed', type=int, default=1, help='of the first program')
    p.add_argument('--programs', type=int, default=1)
    p.add_argument('--keep', type=pathlib.Path, help='a folder for the programs and what they print')
    p.add_argument('--flags', default='-O0')
    p.add_argument('--all-laws', action='store_true', help='all that apply to a program, not seven of them')
    p.add_argument('--link', default='')
    p.add_argument('--build', type=pathlib.Path, help='a build of the tests: its flags, and what it compiled once')
    o = p.parse_args()
    flags, link = of_build(o.build) if o.build else (o.flags.split(), o.link.split())
    if os.environ.get('GRADUS_LONG'):
        o.programs = max(o.programs, 40)
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        keep = o.keep or pathlib.Path(place)
        keep.mkdir(parents=True, exist_ok=True)
        if o.programs > 2:  # the library is read once
            run([o.compiler, '-std=gnu++20', *flags, f'-I{o.include}', '-x', 'c++-header', str(here / 'program.hpp'), '-o',
                 str(keep / 'program.hpp.gch')], 900)
        for seed in range(o.seed, o.seed + o.programs):
            verdict, what = check(o.compiler, o.include, seed, flags, link, keep, o.all_laws)
            failed += verdict == 'FAILED'
            print(f'{seed}: {verdict}: {what}', flush=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
