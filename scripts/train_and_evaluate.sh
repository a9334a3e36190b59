#!/usr/bin/env bash
# Starts a program twice, as the chief and as the evaluator of a cluster without parameter servers: two processes on one
# model_dir. Each finds its role in TF_CONFIG (docs/estimator.md).
#   scripts/train_and_evaluate.sh PROGRAM [ITS OPTIONS]
# Ends when both have ended, and with a failure if one of them failed; the other one is stopped then. A signal that ends
# this script ends both.
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = --help ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  [ $# -gt 0 ] && exit 0 || exit 2
fi
cluster='"cluster": {"chief": ["localhost:0"]}'
config() { printf '{%s, "task": {"type": "%s", "index": 0}}' "$cluster" "$1"; }

TF_CONFIG=$(config chief) "$@" &
chief=$!
TF_CONFIG=$(config evaluator) "$@" &
evaluator=$!
stop() { kill "$chief" "$evaluator" 2>/dev/null || true; }
trap 'stop; wait; exit 143' TERM
trap 'stop; wait; exit 130' INT

failed=0
wait -n "$chief" "$evaluator" || failed=$?
[ "$failed" -eq 0 ] || stop
for process in "$chief" "$evaluator"; do
  wait "$process" || { code=$?; [ "$failed" -ne 0 ] || failed=$code; }
done
exit "$failed"
