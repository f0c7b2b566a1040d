"""A hostile recording: every text that a stranger can write tries to become part of the page."""

from dataclasses import replace

from snnbench.cases.outcome import Outcome
from snnbench.recording.reading import Recording
from tests.fakes import CASE
from tests.recordings import failed, recording, skipped, timed, weighed

MARK = "pwned"
SCRIPT = f'</script></style></title><script>window.{MARK}=1</script><img src=x onerror="window.{MARK}=1">'
"""The content of every text. If it runs, it sets `window.pwned`."""
ATTRIBUTE = f"\" onload='window.{MARK}=1' x=\"{{{{ 7*7 }}}} <!-- ]]> \u2028"


def hostile() -> Recording:
    """Names, versions, messages, logs, facts, versions and prose; two sizes, so that names are in lines and legends."""
    name = f"{SCRIPT}/{ATTRIBUTE}"
    about = {"version": SCRIPT, "adapter": SCRIPT, "environment": SCRIPT, "settings": {"torch": SCRIPT}}
    large = CASE.with_(neurons=96)
    records = [
        timed(one, trial, case, train=ms, forward=1.0, backward=1.0, flags=[SCRIPT], **about)
        for one, ms in ((name, 2.0), ("plain", 3.0))
        for case in (CASE, large)
        for trial in (0, 1)
    ]
    records += [weighed(name), weighed("plain")]
    records += [failed("a" + SCRIPT, "crash", SCRIPT, case=large, log=f"x\n{SCRIPT}"), timed("a" + SCRIPT, train=1.0)]
    records += [skipped("b" + SCRIPT, "unsupported", SCRIPT)]
    outcome = Outcome(status="measured", verdict="deviates", deviation=SCRIPT)
    records += [timed("c" + SCRIPT, train=1.0, outcome=outcome)]
    made = recording(*records, name="a" + SCRIPT.replace("/", "\u2215"), baseline=name, model=SCRIPT)
    config = made.config["config"] | {"analysis": f"{SCRIPT}\n\n{ATTRIBUTE}", "name": SCRIPT}
    machine = {"model": SCRIPT, "cpu": {SCRIPT: SCRIPT}, "gpus": [{SCRIPT: [SCRIPT]}]}
    return replace(made, config=made.config | {"config": config, "snnbench": SCRIPT, "only": [SCRIPT]}, machine=machine)
