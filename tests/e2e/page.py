#!/usr/bin/env python3
"""Check a page: every element is closed, nothing is fetched, no script."""

import html.parser
import sys

VOID = {"meta", "rect", "line", "img", "link", "br", "hr", "input"}
OPTIONAL = {"th", "td"}  # may be left unclosed


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = {}

    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        assert tag not in ("script", "img", "link", "iframe", "object"), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in ("src", "href"), (name, value)
        if tag not in VOID and tag not in OPTIONAL:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID and tag not in OPTIONAL:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in OPTIONAL:
            assert self.open and self.open[-1] == tag, (tag, self.open[-5:], self.getpos())
            self.open.pop()


text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
assert "url(" not in text and "@import" not in text
assert text.startswith("<!doctype html>")
assert page.seen["main"] == 1 and page.seen["section"] >= 1
