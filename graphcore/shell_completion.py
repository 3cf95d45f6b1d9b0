"""Scripts that complete the command in bash, zsh and fish, made from its parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

SHELLS: Final = ("bash", "zsh", "fish")
_BASH: Final = """\
_{program}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" IFS=$'\\n'
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={commands}
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case "$word" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$word")) ;; esac
}}
complete -o filenames -F _{program} {program}
"""
_ZSH: Final = """\
#compdef {program}
_{program}() {{
  local -a commands=({commands})
  if (( CURRENT == 2 )); then
    _describe command commands
    _files
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{cases}
    *) _files ;;
  esac
}}
compdef _{program} {program}
"""


class _Option(NamedTuple):
    """An option of a command, or a word that it takes; `takes_value` if a value follows."""

    forms: tuple[str, ...]
    words: str
    takes_value: bool


def completion_script(shell: str, parser: argparse.ArgumentParser, program: str) -> str:
    """The script that completes commands, their options and files.

    Args:
        shell: "bash", "zsh" or "fish".
        parser: the parser of the command, whose commands are subparsers.
        program: the name of the command.
    """
    commands = dict(_commands(parser))
    words = {name: (command.description or "").replace("%%", "%") for name, command in commands.items()}
    options = {name: list(_options(command)) for name, command in commands.items()}
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](program, words, options)


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _options(parser: argparse.ArgumentParser) -> Iterator[_Option]:
    for action in parser._actions:
        if action.choices and not action.option_strings:
            yield from (_Option((str(word),), "", False) for word in action.choices)
        elif action.option_strings:
            yield _Option(tuple(action.option_strings), (action.help or "").replace("%%", "%"), action.nargs != 0)


def _bash(program: str, words: dict[str, str], options: dict[str, list[_Option]]) -> str:
    forms = {name: [form for option in listed for form in option.forms] for name, listed in options.items()}
    cases = [f"      {name}) words={_lines(listed)} ;;" for name, listed in forms.items()]
    return _BASH.format(program=program, commands=_lines([*words]), cases="\n".join(cases))


def _lines(texts: list[str]) -> str:
    """Texts as one word of bash, each on a line."""
    return "$'" + "\\n".join(texts) + "'"


def _zsh(program: str, words: dict[str, str], options: dict[str, list[_Option]]) -> str:
    commands = " ".join(shlex.quote(f"{name}:{text}") for name, text in words.items())
    cases = [f"    {name}) _arguments {' '.join(map(_zsh_option, _spread(listed)))} {_rest(listed)} ;;" for name, listed in options.items()]
    return _ZSH.format(program=program, commands=commands, cases="\n".join(cases))


def _spread(options: list[_Option]) -> list[_Option]:
    return [_Option((form,), option.words, option.takes_value) for option in options for form in option.forms if form.startswith("-")]


def _rest(options: list[_Option]) -> str:
    """The form of the other arguments for zsh: words to choose from, or files."""
    choices = [form for option in options for form in option.forms if not form.startswith("-")]
    return shlex.quote(f"*:word:({' '.join(choices)})") if choices else "'*:file:_files'"


def _zsh_option(option: _Option) -> str:
    words = option.words.replace("[", "(").replace("]", ")").replace(":", "\\:")
    return shlex.quote(f"{option.forms[0]}[{words}]" + (":value:_files" if option.takes_value else ""))


def _fish(program: str, words: dict[str, str], options: dict[str, list[_Option]]) -> str:
    lines = [f"complete -c {program} -n __fish_use_subcommand -a {name} -d {shlex.quote(text)}" for name, text in words.items()]
    for name, listed in options.items():
        lines += [_fish_option(program, name, option) for option in listed]
    return "\n".join(lines) + "\n"


def _fish_option(program: str, command: str, option: _Option) -> str:
    forms = [
        f"-l {form[2:]}" if form.startswith("--") else f"-s {form[1:]}" if form.startswith("-") else f"-a {form}" for form in option.forms
    ]
    condition = shlex.quote(f"__fish_seen_subcommand_from {command}")
    value = " -r" if option.takes_value else ""
    return f"complete -c {program} -n {condition} {' '.join(forms)}{value} -d {shlex.quote(option.words)}"
