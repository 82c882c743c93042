select r.day, r.revenue, (select sum(amount) from {{ ref('top_customers') }}) as of_top_customers from {{ ref('revenue_daily') }} r
