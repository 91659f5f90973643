"""Writes output.json: what Salt's own outputters print for some returns. Run with the Python of a Salt installation."""

import json
import pathlib

import salt.config
import salt.output

NESTED = [
    True, None, 3, -1.5, 1e16, 1e-7, "text", "two\nlines", "", "trailing\n", [], {}, [1, "a", None],
    {"b": 1, "a": {"c": [1, 2], "d": {}}}, [[1, 2], {"a": 1}], [{"a": {"b": "x\ny"}}, "z\nw"], {"a": "x\ny", "e": "", "l": []},
    {"10": 1, "9": 2, "B": 3, "a": 4}, "\u001b[31mred", "日本 é", [[]], [{}], {"a": [{"b": 1, "c": 2}, {"b": 3}]},
]


def state(name, number, result, changes=None, comment="", **more):
    entry = {
        "name": name,
        "result": result,
        "changes": changes or {},
        "comment": comment,
        "__run_num__": number,
        "__sls__": "x",
        "__id__": name,
        "start_time": "10:11:12.123456",
        "duration": 12.5,
    }
    entry.update(more)
    return entry


HIGHSTATE = [
    {
        "file_|-motd_|-/etc/motd_|-managed": state("/etc/motd", 0, True, {"diff": "--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n"}, "File /etc/motd updated"),
        "cmd_|-x_|-x_|-run": state("x", 1, False, {}, 'Command "x" run\nand failed', duration=990.25),
        "pkg_|-vim_|-vim_|-installed": state("vim", 2, True, {}, "All specified packages are already installed"),
    },
    {
        "file_|-a_|-/a_|-managed": state("/a", 0, None, {"newfile": "/a"}, "The file /a is set to be changed"),
        "test_|-w_|-w_|-nop": state("w", 1, True, {}, "", warnings=["first warning", "second"]),
        "test_|-long_|-long_|-nop": state("long", 2, True, {"a": {"old": 1, "new": [1, 2]}}, "  spaces \n", duration=1500.0),
    },
    {"no_|-states_|-states_|-None": state("No States", 0, False, {}, "No Top file or master_tops data matches found.", duration=0)},
    ["Rendering SLS 'base:x' failed: Jinja error", "another"],
    "just text\nof two lines",
    {},
] + [{f"test_|-t{n}_|-t{n}_|-nop": state(f"t{n}", n, True) for n in range(12)}]


def main():
    opts = salt.config.DEFAULT_MASTER_OPTS.copy()
    opts.update({"color": False, "extension_modules": "", "cachedir": "/tmp", "state_verbose": True, "state_output": "full"})
    def show(data, out):
        return salt.output.out_format({"m1": data}, out, opts)
    cases = {
        "nested": [[data, show(data, "nested")] for data in NESTED],
        "highstate": [[data, show(json.loads(json.dumps(data)), "highstate")] for data in HIGHSTATE],
    }
    text = json.dumps(cases, ensure_ascii=False, indent=1)
    pathlib.Path(__file__).with_name("output.json").write_text(text + "\n")


main()
