"""A long answer with every kind of formatting, to see what a channel makes of it."""

from __future__ import annotations

LONG_ANSWER = """\
# A tour of formatting

This answer is long on purpose. Each channel turns it into what its network can show: the web page \
draws it as it is, a phone may get *emphasis*, **bold**, ~~strokes~~ and `code` in its own signs.

## A list

1. First comes the message.
2. Then the agent works.
   - It may take its time.
   - It may be told more meanwhile.
3. Then comes the answer.

## A table

| room | who is in it | open |
|------|--------------|------|
| switchboard | the operator | always |
| mailroom | letters | on request |
| gatehouse | the porter | day & night |

## A block of code

```python
def greet(name: str) -> str:
    return f"Good evening, {name}. <Your key>, please."
```

> A quotation: "Nothing is lost, and nothing is said twice."

## Other scripts

هذا سطر يُقرأ من اليمين إلى اليسار، وفيه كلمة English واحدة.

这一行是中文。 Ünïcödé and an emoji: 🛎️

---

A link to nowhere in particular: [example](https://example.com). That is all.
"""
