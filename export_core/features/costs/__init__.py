"""What the call of an artifact costs in each reader: the policy's budgets, and what exceeds them."""

from export_core.base.feature import Feature

FEATURE = Feature(
    policy_key="policy_key:BUDGETS",
    rule="over_budget:with_budgets",
    findings="findings:cost_findings",
    table="findings:newest_costs",
    row_line="findings:row_line",
)
