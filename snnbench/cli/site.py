"""`snnbench site`: it makes a static site of recordings."""

from pathlib import Path
from typing import Annotated

import typer

from snnbench import files
from snnbench.cli.options import named, writing


def site(
    results: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder that holds recordings, as results/.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="DIR", callback=named, help="The folder of the site; made if it is missing."
        ),
    ],
) -> None:
    """Make a static site of all recordings in a folder: pages for questions, libraries, cells and recordings.

    The pages need no server and no network, and any host of static files can serve them. Each cell has an address that
    stays the same in every later site.

    snnbench site results -o site
    """
    from snnbench.report import tidy
    from snnbench.report.site import catalogue, site
    from snnbench.run.progress import bar, say

    tidy.require_parquet()
    with writing(output):
        files.try_folder(output)
    loaded = catalogue.load(results, say)
    with writing(output), bar("parts written") as each:
        count = site.write(loaded, output, each)
    typer.echo(
        f"{output / 'index.html'}: written, with {count - 1:,} other files on {len(loaded.recordings)} recordings"
    )
