#!/usr/bin/env python3
"""Federated rounds of eight emulated boards, four of each image, and a server: each board has a folder with two pipes."""
import os
import subprocess
import sys
import tempfile

qemu, server, *images = sys.argv[1:]  # images: machine=image
with tempfile.TemporaryDirectory() as folder:
    boards = []
    for number in range(8):
        at = os.path.join(folder, str(number))
        os.mkdir(at)
        os.mkfifo(os.path.join(at, "in"))
        os.mkfifo(os.path.join(at, "out"))
        with open(os.path.join(at, "number"), "wb") as f:
            f.write(bytes([number]))
    leader = subprocess.Popen([server, folder])
    for number in range(8):
        machine, image = images[number % len(images)].split("=", 1)
        boards.append(subprocess.Popen([qemu, "-M", machine, "-semihosting-config", "enable=on,target=native", "-display",
                                        "none", "-serial", "none", "-monitor", "none", "-kernel", image],
                                       cwd=os.path.join(folder, str(number))))
    failed = []
    try:
        if leader.wait(timeout=300) != 0:
            failed.append("the server")
        for number, board in enumerate(boards):  # the line is closed, so they leave
            if board.wait(timeout=30) != 0:
                failed.append(f"board {number} ({board.returncode})")
    except subprocess.TimeoutExpired as late:
        failed.append(f"too late: {late.cmd[0]}")
    for process in [leader, *boards]:
        process.kill()
print("failed: " + ", ".join(failed) if failed else "all left in order")
sys.exit(1 if failed else 0)
