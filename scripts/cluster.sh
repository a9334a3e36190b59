#!/usr/bin/env bash
# A cluster of processes on this machine: a chief, two workers, two parameter servers and an evaluator, over gRPC with
# certificates of its own making.
#   scripts/cluster.sh [--kill N] [--port P] [--runs FOLDER] [PROGRAM [ITS OPTIONS]]
# --kill N: N times a task that is chosen at random dies by SIGKILL and is started again; at the end the last checkpoint
# is compared with that of one process. P: the first of two ports, 4300 if nothing is said. FOLDER: runs/cluster, made
# anew. PROGRAM: build/bin/digits with few steps; another has to know --cluster grpc, --certs and --model_dir.
#
# A task that ends with an error is started again, as systemd or Kubernetes would (docs/cluster.md): a worker or the chief
# goes on where the cluster is; where a parameter server was lost, all tasks end and begin at the last checkpoint.
set -euo pipefail
here=$(dirname "$0")
kills=0 port=4300 runs=runs/cluster
while [ $# -gt 0 ]; do
  case $1 in
    --kill) kills=$2; shift 2 ;;
    --port) port=$2; shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "cluster.sh: unknown option $1 (there are --kill, --port and --runs)" >&2; exit 2 ;;
    *) break ;;
  esac
done
program=("$@")
[ $# -gt 0 ] || program=(build/bin/digits --steps 300 --batch 96 --train_digits 2000 --test_digits 500
  --save_checkpoints_steps 20 --threads 1 --cache "$runs/data")
rm -rf "$runs"
mkdir -p "$runs"
"$here/certificates.sh" "$runs/certs"

# What one process makes of the same examples; it also draws the digits, which tasks then only read.
echo "one process first"
"${program[@]}" --model_dir "$runs/alone" --cluster in_process --ps 1 --workers 3 >"$runs/alone.log" 2>&1

cluster=$(printf '"cluster": {"ps": ["localhost:%d", "localhost:%d"], "chief": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}' \
  "$port" $((port + 1)))
tasks=("ps 0" "ps 1" "chief 0" "worker 0" "worker 1" "evaluator 0")
declare -A process=() ended=()
log_of() { echo "$runs/${1/ /-}.log"; }
start() { # task
  TF_CONFIG=$(printf '{%s, "task": {"type": "%s", "index": %s}}' "$cluster" "${1% *}" "${1#* }") \
    "${program[@]}" --model_dir "$runs/together" --cluster grpc --certs "$runs/certs" >>"$(log_of "$1")" 2>&1 &
  process[$1]=$!
}
stop() { kill "${process[@]}" 2>/dev/null || true; }
trap stop EXIT
trap 'stop; wait; exit 143' TERM
trap 'stop; wait; exit 130' INT
for task in "${tasks[@]}"; do start "$task"; done

killed=0 again=0 ending=$SECONDS
next=$((SECONDS + 2))
while [ ${#ended[@]} -lt ${#tasks[@]} ]; do
  for task in "${tasks[@]}"; do
    [ -z "${ended[$task]:-}" ] || continue
    kill -0 "${process[$task]}" 2>/dev/null && continue
    if wait "${process[$task]}" 2>/dev/null; then
      ended[$task]=yes
    else
      again=$((again + 1))
      if [ $again -gt $((20 + 10 * kills)) ]; then
        echo "cluster.sh: tasks end again and again with errors; see $runs/*.log" >&2
        stop
        exit 1
      fi
      start "$task"
    fi
  done
  # All end within moments, unless one was killed in them: it is started again and finds nobody. Then all are started again.
  [ ${#ended[@]} -gt 0 ] || ending=$SECONDS
  if [ $((SECONDS - ending)) -gt 60 ]; then
    ending=$SECONDS
    for task in "${!ended[@]}"; do
      unset "ended[$task]"
      start "$task"
    done
  fi
  if [ $killed -lt "$kills" ] && [ $SECONDS -ge $next ]; then
    task=${tasks[$((RANDOM % 5))]}
    if [ -z "${ended[$task]:-}" ] && kill -9 "${process[$task]}" 2>/dev/null; then
      killed=$((killed + 1))
      echo "killed $task"
    fi
    next=$((SECONDS + 1 + RANDOM % 2))
  fi
  sleep 0.1
done
grep -h "test accuracy" "$(log_of "chief 0")" "$(log_of "evaluator 0")" | tail -3
echo "$killed kills, $again tasks started again"
newest() { sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' "$1/checkpoint"; }
one=$runs/alone/$(newest "$runs/alone") other=$runs/together/$(newest "$runs/together")
if "$(dirname "${program[0]}")/gradus-checkpoint" diff "$one" "$other"; then
  echo "the parameters are those of one process, bit for bit"
else
  echo "cluster.sh: the parameters differ from those of one process: $one $other" >&2
  exit 1
fi
