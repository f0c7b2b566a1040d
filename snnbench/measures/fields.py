"""Types of the values in a record; pydantic checks them when a recording is read."""

from typing import Annotated

from pydantic import Field

from snnbench.adapter.declaration import NAME

MOST_NS = 10**18
"""30 years: no duration is longer."""

Count = Annotated[int, Field(ge=0, le=10**15)]
Size = Annotated[int, Field(ge=1, le=10**12)]
Duration = Annotated[int, Field(ge=0, le=MOST_NS)]
Elapsed = Annotated[int, Field(ge=1, le=MOST_NS)]
Bytes = Annotated[int, Field(ge=-(10**18), le=10**18)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=f"^{NAME}$")]
