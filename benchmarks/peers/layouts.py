"""Where the ranks are: on this machine, or in emulated nodes with shaped cards."""
import json
import os
import re
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """`4`: so many ranks here. `2x4@5gbit`: nodes of as many ranks each, and the rate of their cards."""
    text: str
    nodes: int
    ranks_of_node: int
    rate: str = ""

    @staticmethod
    def of(text):
        match = re.fullmatch(r"(?:(\d+)x)?(\d+)(?:@(\w+))?", text)
        if match is None or bool(match[1]) != bool(match[3]) or 0 in (int(match[1] or 1), int(match[2])):
            raise ValueError(f"layout {text!r}: 4 is four ranks here, 2x4@5gbit two emulated nodes of four")
        return Layout(text, int(match[1] or 1), int(match[2]), match[3] or "")

    @property
    def ranks(self):
        return self.nodes * self.ranks_of_node

    @property
    def shape(self):
        return f"{self.nodes}x{self.ranks_of_node}"

    @property
    def is_here(self):
        return self.nodes == 1


class Nodes:
    """Emulated nodes for programs that bring their own launcher. Its remote shell must end in a node; the
    launcher itself runs in the first node's network and in nothing else of it, so that it sees the script."""
    NAME = "peers"

    def __init__(self, program, layout, folder):
        self.layout, self.program = layout, program
        self.agent = os.path.join(folder, "remote-shell")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n"
                       "# ssh's words: options, host, command\n"
                       'while [ "${1#-}" != "$1" ]; do shift; done\n'
                       "host=$1; shift\n"
                       f'exec {program} cluster exec --name {self.NAME} "node$((${{host##*.}} - 1))" -- sh -c "$*"\n')
        os.chmod(self.agent, 0o700)

    def __enter__(self):
        command = [self.program, "cluster", "up", self.layout.shape, "--name", self.NAME, "--json",
                   "--rate", self.layout.rate]
        nodes = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
        self.hosts = [node["address"] for node in nodes["nodes"]]
        self.enter = ["nsenter", f"--net=/proc/{nodes['nodes'][0]['pid']}/ns/net"]
        return self

    def __exit__(self, *_):
        subprocess.run([self.program, "cluster", "down", "--name", self.NAME], capture_output=True, timeout=60)

    @property
    def slots(self):
        return ",".join(f"{host}:{self.layout.ranks_of_node}" for host in self.hosts)
