"""What berth-web's pages look like in a real browser. Called by web_browser.bats, with any of
these one behind the other:

    look URL              the first page: what it says, at every width, in light and dark
    live URL CMD          it follows what CMD does, without being loaded again
    pages URL JOB         a job's page, the history, the report; a hostile command
    elsewhere URL         another site's page gets nothing
    restart URL CMD CMD   the daemon goes and comes back under an open page
    details URL JOB       a job that waits for others, a card that is paused, a page of no job
    vram URL TEXT         the tile with the VRAM in use says that
    login URL TOKEN       the form, and what a session then opens
"""
import http.server
import subprocess
import sys
import threading

from browser import Browser


def insist(what, truth):
    if not truth:
        raise AssertionError(what)


def check_fits(page, what):
    wide = page.value("document.scrollingElement.scrollWidth")
    room = page.value("innerWidth")
    insist(f"{what} is {wide} wide in a window of {room}", wide <= room)


def check_quiet(page, what):
    insist(f"{what} complains: {page.complaints}", not page.complaints)


# Contrast of two colours as defined by WCAG 2.
CONTRAST = """(() => {
    const rgb = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = (c) => rgb(c).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const of = (fore, back) => (Math.max(light(fore), light(back)) + .05) / (Math.min(light(fore), light(back)) + .05);
    const card = document.querySelector(".card");
    return Math.min(of(getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor),
        ...[...card.querySelectorAll("p, a, .dim")].map((n) => of(getComputedStyle(n).color, getComputedStyle(card).backgroundColor)));
})()"""


def look(browser, url):
    for width in (390, 768, 1400):
        for dark in (False, True):
            what = f"the page at {width} px, {'dark' if dark else 'light'}"
            page = browser.open(url, width=width, dark=dark)
            page.until("document.querySelector('#running tbody tr')")
            page.until("document.querySelector('#live').textContent === 'live'")
            check_fits(page, what)
            contrast = page.value(CONTRAST)
            insist(f"{what} has a contrast of {contrast}", contrast >= 4.5)
            back = page.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] < 128")
            insist(f"{what} is not", back == dark)
            check_quiet(page, what)
            page.close()
    page = browser.open(url)
    insist("GPUs", page.value("document.querySelectorAll('.card[data-gpu]').length") == 2)
    insist("a card names its job", "holder" in page.text(".card[data-gpu='0'] .holders"))
    insist("why it waits", "GpuBusy" in page.text("#waiting tbody") or "Resources" in page.text("#waiting tbody"))
    # Every control has a name for screen readers.
    nameless = page.value("""[...document.querySelectorAll("button, input, select, [role=img]")]
        .filter((n) => !n.hidden && !n.textContent.trim() && !n.getAttribute("aria-label")).map((n) => n.outerHTML).join()""")
    insist(f"without a name: {nameless}", not nameless)
    insist("the theme's button", page.value("document.getElementById('theme').getAttribute('aria-label')") == "Dark colours")
    page.value("document.getElementById('theme').click()")
    page.go(url)
    insist("the choice of dark is kept", page.value("document.documentElement.dataset.theme") == "dark")
    check_quiet(page, "the page")
    plain = browser.open(url, script=False)
    plain.ask("Emulation.setScriptExecutionDisabled", {"value": False})
    insist("without scripts", "holder" in plain.text("#plain"))


def live(browser, url, command):
    page = browser.open(url)
    page.until("document.querySelector('#live').textContent === 'live'")
    page.value("window.isTheSame = true")
    job = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout.strip()
    page.until(f"document.querySelector('#running [data-job=\"{job}\"]')")
    insist("the page was not loaded again", page.value("window.isTheSame") is True)
    subprocess.run(["berth", "cancel", job], check=True, stdout=subprocess.DEVNULL)
    page.until(f"document.querySelector('#ended [data-job=\"{job}\"]')")
    page.value("(() => { const f = document.getElementById('filter'); f.value = 'no such'; f.dispatchEvent(new Event('input')); })()")
    insist("a filter", page.value("document.querySelector('#running tbody').children.length") == 0)
    check_quiet(page, "the page")


def pages(browser, url, job):
    page = browser.open(f"{url}jobs/{job}", width=390)
    page.until("document.querySelector('pre.log')")
    insist("the log", "said by the job" in page.text("pre.log"))
    command = page.text("pre.shell")
    insist(f"the command as text: {command}", "<img src=x onerror=" in command and "\\x1b" in command)
    insist("nothing of it became an element", page.value("document.querySelectorAll('main img').length") == 0)
    page.until("document.querySelector('svg.plot path.line')")
    check_fits(page, "a job's page")
    check_quiet(page, "a job's page")
    for path, wanted in (("history", "#history tbody tr"), ("report", "#users tbody tr"), ("", "#ended tbody tr")):
        for width in (390, 1400):
            page = browser.open(url + path, width=width)
            page.until(f"document.querySelector('{wanted}')")
            check_fits(page, "/" + path)
            insist("no element of a job's making", page.value("document.querySelectorAll('main img').length") == 0)
            check_quiet(page, "/" + path)
            page.close()
    page = browser.open(url + "history?state=FAILED")
    page.until("[...document.querySelectorAll('#history .chip')].every((c) => c.textContent === 'failed') && document.querySelector('#history tbody tr')")


PATH = """import("/assets/plot.js").then((m) => m.path(%s, (x) => x / 1e6, (y) => y))"""


def details(browser, url, job):
    page = browser.open(f"{url}jobs/{job}")
    page.until("document.querySelector('#why')")
    why = page.text("#why")
    insist(f"who holds the cards: {why}", "2 when jobs " in why and "http" not in why)
    links = page.value("[...document.querySelectorAll('#why a')].map((a) => a.getAttribute('href')).sort().join()")
    insist(f"a link to each: {links}", links == "/jobs/2,/jobs/3")
    # A daemon that was down for ten minutes, between samples every two seconds.
    times = [0, 2, 4, 6, 606, 608, 610]
    drawn = page.value(PATH % [[t * 1000000, 5] for t in times])
    insist(f"no line where nothing was measured: {drawn}", drawn.count("M") == 2)
    drawn = page.value(PATH % [[t * 600000000, 5] for t in range(6)])
    insist(f"one line where samples are rare: {drawn}", drawn.count("M") == 1)
    subprocess.run(["berth", "pause", "0"], check=True, stdout=subprocess.DEVNULL)
    page = browser.open(url)
    page.until("document.querySelector('#waiting tbody tr')")
    title = " ".join(page.text("section[aria-label=Pending] h2").split())
    insist(f"an array counts as its tasks: {title}", title.replace(" ", "") == "Pending11")
    page.until("document.querySelector(\".card[data-gpu='0'] .figures\").textContent.includes('no new jobs')")
    card = page.text(".card[data-gpu='0'] .figures")
    insist(f"a paused card has nothing to give: {card}", "free" not in card)
    insist("a cancelled job keeps its peak", "peak 3.0 GiB" in page.text("#ended tbody"))
    page = browser.open(url + "jobs/999")
    page.until("document.querySelector('#live').textContent === 'live'")
    text = page.text("body")
    insist(f"the error once: {text}", text.count("no job 999") == 1)


class Silent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href=data:,><title>elsewhere</title>")

    def log_message(self, *_):
        pass


def elsewhere(browser, url):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Another name of the same address is another site to a browser.
    page = browser.open(f"http://localhost:{server.server_port}/")
    got = page.value(f"fetch('{url}api/v1/overview').then((a) => a.text(), () => 'nothing')")
    insist(f"fetch got {got[:80]}", got == "nothing")
    for kind in ("script", "iframe", "img"):
        got = page.value(f"""new Promise((resolve) => {{
            const node = document.createElement("{kind}");
            node.onload = () => resolve("{kind}" === "iframe" ? String(node.contentDocument) : "loaded");
            node.onerror = () => resolve("nothing");
            node.src = "{url}" + ("{kind}" === "iframe" ? "" : "api/v1/status");
            document.body.append(node);
        }})""")
        insist(f"a {kind} got {got}", got in ("nothing", "null"))
    server.shutdown()


def restart(browser, url, stop, start):
    page = browser.open(url)
    page.until("document.querySelector('#live').textContent === 'live'")
    page.value("window.isTheSame = true")
    subprocess.run(stop, shell=True, check=True, stdout=subprocess.DEVNULL)
    page.until("document.querySelector('#live').textContent === 'no daemon' && document.querySelector('#banner')")
    insist("what there was is still there", page.value("document.querySelectorAll('.card').length") > 0)
    subprocess.run(start, shell=True, check=True, stdout=subprocess.DEVNULL)
    page.until("document.querySelector('#live').textContent === 'live' && !document.querySelector('#banner')")
    insist("the page was not loaded again", page.value("window.isTheSame") is True)


def vram(browser, url, text):
    for width in (390, 1400):
        page = browser.open(url, width=width)
        page.until("document.querySelector('.card[data-gpu]')")
        says = page.value("[...document.querySelectorAll('.tile')].map((n) => n.innerText.replace(/\\s+/g, ' '))"
                          ".filter((text) => text.includes('VRAM')).join()")
        insist(f"the tile says '{says}', not '{text}'", says == text)
        check_fits(page, f"the page at {width} px")
        check_quiet(page, f"the page at {width} px")
        page.close()


def login(browser, url, token):
    page = browser.open(url + "history")
    insist("the form", page.value("document.querySelector('input[name=token]').type") == "password")
    check_fits(page, "the form")
    fill = "document.querySelector('input[name=token]').value = '%s'; document.querySelector('form').submit()"
    page.value(fill % "not the token")
    page.until("document.querySelector('[role=alert]')")
    page.value(fill % token)
    page.until("document.querySelector('#history, p.empty')")
    insist("it leads on to where it was asked", page.value("location.pathname") == "/history")
    insist("no script reads the cookie", page.value("document.cookie") == "")
    page.value("document.querySelector('header form').submit()")
    page.until("document.querySelector('input[name=token]')")


LOOKS = {look: 1, live: 2, pages: 2, details: 2, elsewhere: 1, restart: 3, vram: 2, login: 2}


def main():
    args = sys.argv[1:]
    with Browser() as browser:
        while args:
            step = next(f for f in LOOKS if f.__name__ == args[0])
            step(browser, *args[1:1 + LOOKS[step]])
            del args[:1 + LOOKS[step]]


main()
