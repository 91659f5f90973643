"""Writes arguments.json: how Salt's own command line reads arguments. Run with the Python of a Salt installation."""

import json
import pathlib

import salt.utils.args

WORDS = [
    "", " ", "   ", "---", "...", "1", "-1", "+1", "0", "007", "0644", "0x1f", "0o17", "1_000", "_", "1_", "12_34 ",
    "1.5", "-1.5", ".5", "1e3", "1.0e3", "1.", "inf", ".inf", "-.inf", "1:30", "1:30:15", "10.0.0.1",
    "true", "True", "TRUE", "yes", "Yes", "no", "on", "off", "y", "n", "null", "Null", "~", "None", "none",
    "text", "two words", "'quoted'", "\"quoted\"", "'1'", "\"true\"", "'it''s'", "'open", "\"open",
    "[1, 2]", "[]", "[a, b]", "[1, [2, 3]]", " [1]", "[1", "1, 2", "a, b", "- a", "- a - b",
    "{a: 1}", "{}", "{a: {b: c}}", " {a: 1}", "{a: 1", "a: 1", "a:1", "{1: 2}", "{a}", "{\"a\": [1, true, null]}",
    "#", "# x", "a # b", "1 # one", "[1] # one", "#!/bin/sh", "a#b", "x: 1 # y", "{a: 1} # y", "null # x",
    "|", "!", ">", "!x", "!!str 1", "!!int '1'", "&a", "*a", "%", "%x", "@", "@x", "`x`", ",", "?", "? a", ":", "::",
    "a\tb", "\t1", "1\n", "a\nb", "a\r", "é", "日本", "\u00a0", "a: b: c", "x=y", "a==b", "=x", "==", "-", "--", "- ",
    "2020-01-02", "2020-01-02 03:04:05", "2020-01-02T03:04:05Z", "12345678901234567890", "-9223372036854775808",
    "9223372036854775807", "18446744073709551615", "1e400", "<<", "C:\\x", "a\\nb", "\"a\\nb\"", "/etc/hosts", "salt://x", "http://x/y?a=b",
    "'a': 1", "\"a\": 1", "a:", "a: ", "{a: 1}}", "[1]]", "{{ x }}", "{% x %}", "*", "web*", "a,b", "a|b", "a&b", "$HOME",
    "ls -l /tmp", "echo 'x: y'", "echo \"a\" # b", "echo {a,b}", "test -e x && echo y", "awk '{print $1}'",
]

INPUTS = [
    [], ["a"], ["1", "b=2"], ["name=x", "test=True"], ["a=1", "a=2"], ["a==b"], ["=x"], ["a="], ["a= "], ["1a=2"],
    ["_a=1"], ["a-b=1"], ["a.b=1"], ["a b=1"], ["é=1"], ["a=b=c"], ["a=b\nc"], ["a=\nb"], ["x='1'"], ["x=[1, 2]"],
    ["x={a: 1}"], ["pillar={\"a\": [1]}"], ["x=a # b"], ["x=None"], ["a=b\n"], ["-a=1"], ["a=!"], ["cmd=ls -l", "1"],
    ["echo a=b"], ["http://x/?a=b"], ["x=a: b"], ["x=- a"], ["x=0644"], ["mode='0644'"], ["x=#"], ["a =1"], ["a= 1"],
]


def main():
    words = [[word, salt.utils.args.yamlify_arg(word)] for word in WORDS]
    inputs = []
    for given in INPUTS:
        args, kwargs = salt.utils.args.parse_input(list(given), condition=False)
        inputs.append([given, args, kwargs])
    lines = ["{", '"words": [']
    lines.append(",\n".join(dump(word) for word in words))
    lines += ["],", '"inputs": [']
    lines.append(",\n".join(dump(given) for given in inputs))
    lines += ["]", "}"]
    pathlib.Path(__file__).with_name("arguments.json").write_text("\n".join(lines) + "\n")


def dump(item):
    # JSON has no infinities: they are written as text with a mark.
    return json.dumps(mark(item), ensure_ascii=False)


def mark(item):
    if isinstance(item, float) and item in (float("inf"), float("-inf")):
        return f"float {item}"
    if isinstance(item, list):
        return [mark(one) for one in item]
    return item


main()
