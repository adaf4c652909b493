"""FCFS of jobs that take all of their GPUs together, from one flat pool, in SimPy.

python3 simpy_fcfs.py GPUS < JOBS > TIMES

JOBS: a line `submit_s,service_s,gpus` a job, in the order of submission. TIMES: `start_s,finish_s`, as many lines.
"""

import sys

import simpy


def run_job(env, pool, row, times):
    submit, service, gpus = row
    yield env.timeout(submit)
    # A container serves whoever asked first, and nobody else before.
    yield pool.get(gpus)
    start = env.now
    yield env.timeout(service)
    yield pool.put(gpus)
    times.append((start, env.now))


def main():
    gpus = int(sys.argv[1])
    rows = [line.split(",") for line in sys.stdin]
    rows = [(float(submit), float(service), int(wanted)) for submit, service, wanted in rows]
    env = simpy.Environment()
    pool = simpy.Container(env, capacity=gpus, init=gpus)
    times = [[] for _ in rows]
    for row, its in zip(rows, times):
        env.process(run_job(env, pool, row, its))
    env.run()
    for ((start, finish),) in times:
        print(f"{start!r},{finish!r}")


main()
