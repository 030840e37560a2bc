"""Counts of the language of comments, documents and names, at one or several commits.

    python -m tools.language 881d57bc HEAD

prints a Markdown table. `docs/project/language.md` has such a table, and the reading of pages by
newcomers. `tests/tidy.rs` has the rules, and fails if one is broken.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

QUESTIONS = ("What", "How", "Whether", "Where", "Who", "When")

HEARSAY = re.compile(
    r"\b(hears?|heard|tells?|told|says?|said|asks?|asked|comes?|came|leaves?|goes|gone|went|knows?|"
    r"learns?|wants?|wanted|silent|silence)\b",
    re.IGNORECASE,
)
"""Verbs for which the field has a term, such as receive, report, request and depart."""

PHRASES = re.compile(
    r"\b(under way|there and back|gives up|hears|tells|so many|half as much again|of one's own|"
    r"put off|sent again)\b",
    re.IGNORECASE,
)
"""Phrases of the glossary that every commit is measured by; `tests/tidy/phrases.rs` has more."""

STEMS = re.compile(
    r"\b\w*?(?:\b|_)(?:heard|hears?|told|tells?|said|says?|asked|asking|asks?|wanted|wants?|"
    r"life|lives|quiet|beside)(?:\b|_)\w*"
)
"""Identifiers with a part that is hearsay or a metaphor."""


def files_of(commit: str) -> dict[str, str]:
    """Returns the text of each source file and document of a commit, by path."""
    names = git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    ours = [name for name in names if name.endswith((".rs", ".py", ".md", ".toml"))]
    wanted = "".join(f"{commit}:{name}\n" for name in ours)
    command = ["git", "-C", str(ROOT), "cat-file", "--batch"]
    output = subprocess.run(command, input=wanted.encode(), check=True, capture_output=True).stdout
    texts, place = {}, 0
    for name in ours:
        end = output.index(b"\n", place)
        length = int(output[place:end].split()[-1])
        texts[name] = output[end + 1 : end + 1 + length].decode("utf-8", "replace")
        place = end + 2 + length
    return texts


def git(*arguments: str) -> str:
    """Returns the output of a git command."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def documentation(text: str) -> Iterator[str]:
    """Returns the first line of each documentation comment of a Rust file."""
    before = ""
    for line in text.splitlines():
        found = re.match(r"\s*(//[/!]) ?(.*)", line)
        if found and found[2] and not re.match(r"\s*//[/!] ?\S", before):
            yield found[2]
        before = line


def prose(name: str, text: str) -> str:
    """Returns the comments, docstrings or paragraphs of a file, without code spans."""
    if name.endswith(".rs"):
        text = "\n".join(re.findall(r"^\s*//[/!]? ?(.*)$", text, re.MULTILINE))
    elif name.endswith(".py"):
        text = "\n".join(re.findall(r'"""(.*?)"""', text, re.DOTALL))
    elif name.endswith(".toml"):
        text = "\n".join(re.findall(r"^\s*# ?(.*)$", text, re.MULTILINE))
    else:
        text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "x", text)


def long_lines(name: str, text: str) -> list[int]:
    """Returns the columns of lines above 100, without rows of tables."""
    lines = [line for line in text.splitlines() if not (name.endswith(".md") and line[:1] == "|")]
    return [len(line) for line in lines if len(line) > 100 and " " in line.strip()]


def words(texts: dict[str, str], pattern: str) -> int:
    """Returns the number of words of the files whose path matches."""
    return sum(len(text.split()) for name, text in texts.items() if re.fullmatch(pattern, name))


def counts(commit: str) -> dict[str, str]:
    """Returns the counts of a commit by their description."""
    texts = files_of(commit)
    sources = {n: t for n, t in texts.items() if re.fullmatch(r"crates/[^/]+/src/.*\.rs", n)}
    docs = [line for text in sources.values() for line in documentation(text)]
    first = [re.split(r"\W", line, maxsplit=1)[0] for line in docs]
    code = [re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", text) for text in sources.values()]
    written = {name: prose(name, text) for name, text in texts.items()}
    longest = [columns for name, text in texts.items() for columns in long_lines(name, text)]
    found = {"documentation comments of crates": str(len(docs))}
    found |= {f"... that begin with {word}": str(first.count(word)) for word in QUESTIONS}
    found["... that begin with Returns"] = str(first.count("Returns"))
    found["hearsay verbs in prose"] = str(sum(len(HEARSAY.findall(t)) for t in written.values()))
    found["phrases of the glossary in prose"] = str(
        sum(len(PHRASES.findall(t)) for t in written.values())
    )
    found["identifiers of crates with such a part"] = str(sum(len(STEMS.findall(t)) for t in code))
    found["longest line, columns"] = str(max(longest, default=100))
    found["lines above 100 columns"] = str(len(longest))
    for page in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"):
        found[f"words of {page}"] = str(words(texts, rf"{page}\.md"))
    found["words of docs"] = str(words(texts, r"docs/.*\.md"))
    found["words of notes of figures"] = str(words(texts, r"papers/.*\.md"))
    return found


def main() -> None:
    """Prints the table of the commits of the command line."""
    commits = sys.argv[1:] or ["HEAD"]
    columns = [counts(commit) for commit in commits]
    lines = ["| count | " + " | ".join(f"`{commit}`" for commit in commits) + " |"]
    lines.append("|---" * (len(commits) + 1) + "|")
    for what in columns[0]:
        lines.append(f"| {what} | " + " | ".join(column[what] for column in columns) + " |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
