"""``make messages``: new sentences get an empty entry, gone ones leave, and what people wrote stays."""

from __future__ import annotations

from tools import messages

HEADER = """# What parfocal says.
#   Any words of advice.
msgid ""
msgstr ""
"Language: zh\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"""
BEFORE = f"""{HEADER}
# What a translator noted.
#: parfocal/old.py
#, python-brace-format
msgid "{{count}} calls differ"
msgstr "{{count}} 次调用不一致"

#: parfocal/old.py
msgid "{{this}}: {{that}}"
msgstr "{{this}}，{{that}}"

#: parfocal/old.py
msgid "it was said once"
msgstr "曾经说过"
"""
SAID = """
from parfocal.phrases import joined, phrase

print(joined("; then ", [phrase("{count} calls differ", count=1), phrase("{this}: {that}", this=1, that=2)]))
print(str(phrase("{name}, {value}", name=1, value=phrase("one call differs"))))
"""
AFTER = f"""{HEADER}
#: parfocal/new.py
msgid "; then "
msgstr ""

# What a translator noted.
#: parfocal/new.py
#, python-brace-format
msgid "{{count}} calls differ"
msgstr "{{count}} 次调用不一致"

#: parfocal/new.py
#, python-brace-format
msgid "{{this}}: {{that}}"
msgstr "{{this}}，{{that}}"

#: parfocal/new.py
msgid "one call differs"
msgstr ""

#: parfocal/plan.txt
msgid "the inputs"
msgstr ""
"""


def test_a_catalogue_is_brought_up_to_date(tmp_path, monkeypatch):
    (tmp_path / "parfocal").mkdir()
    (tmp_path / "parfocal" / "new.py").write_text(SAID)
    (tmp_path / "parfocal" / "plan.txt").write_text("# «the inputs»: ...\n")
    monkeypatch.setattr(messages, "help_texts", list)
    said = messages.said_in(tmp_path)
    assert messages.updated(BEFORE, said) == AFTER
    assert messages.updated(AFTER, said) == AFTER


def test_help_is_said_by_the_file_of_the_command():
    said = set(messages.help_texts())
    assert ("parfocal/cli/align.py", "Copy the weights first.") in said
    assert ("parfocal/cli/main.py", "Print the version.") in said
    assert ("parfocal/cli/diff.py", "Show this message and exit.") in said
