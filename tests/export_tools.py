"""What pyperf and asv read from exports, printed as JSON: a script for the Python of their environment.

python export_tools.py PYPERF.json ASV.json
"""

import json
import sys

import pyperf
from asv.results import Results

suite = pyperf.BenchmarkSuite.load(sys.argv[1])
results = Results.load(sys.argv[2])
print(
    json.dumps(
        {
            "pyperf": {each.get_name(): [each.get_nrun(), each.median(), each.get_unit()] for each in suite},
            "asv": {
                key: [results.get_result_value(key, []), results.get_result_stats(key, [])]
                for key in results.get_all_result_keys()
            },
            "commit": results.commit_hash,
        }
    )
)
