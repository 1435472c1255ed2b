"""What the call of an artifact costs in each reader: the policy's budgets, and what exceeds them."""

from export_core.base.feature import Feature

FEATURE = Feature(
    asked_by="budgets",
    facts={"exceeded": "exceeded:EXCEEDED"},
    policy_key="policy_key:BUDGETS",
    keywords={
        "budgets": (
            "{limit: number}, what a call may cost in this run's jaxlib, as in the policy's table of that name and "
            "before it; `jaxexport matrix` sees only the policy",
            "{'max_temp_bytes': 100_000_000}",
        )
    },
    rule="over_budget:with_budgets",
    findings="findings:cost_findings",
    table="findings:newest_costs",
    row_line="findings:row_line",
    picture="costs_svg:costs_picture",
)
