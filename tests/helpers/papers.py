"""A paper that runs in seconds."""

from typing import Any

import yaml

SMALL: dict[str, Any] = yaml.safe_load("""
name: small
title: A small paper
reference: "A. Author: A small paper. Nowhere, 2026"
doi: 10.1000/1
algorithms: {newreno: Reno, bbr: BBR}
tables:
- number: "1"
  caption: Rates
  row_header: Flows
  metrics: {rate: receive_rate_mbps, first: goodput_mbps@1}
  rows:
  - {label: one, scenario: ebcc-single, values: {newreno: 7.0/-}}
  - {label: three, scenario: ebcc-flows-3, values: {bbr: 4.0/3.0}}
figures:
- {number: "1", name: window, caption: windows, over_time: window, scenarios: ebcc-single}
- number: "2"
  name: rates
  caption: rates
  bars: {rate (Mbps): receive_rate_mbps}
  rows: [{label: one, scenario: ebcc-single}]
claims:
- id: "true"
  statement: BBR has a lower RTT than NewReno.
  source: abstract
  tables: "1"
  checks: [{metric: mean_rtt_ms, of: bbr, to: newreno, in: ebcc-single, below: 1}]
- id: "false"
  statement: BBR is slow.
  source: conclusion
  printed: {rate: 1.5}
  checks: [{metric: receive_rate_mbps, of: bbr, in: ebcc-single, below: 2}]
""")
