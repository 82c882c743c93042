select date_trunc('day', ordered_at) as day, count(*) as orders, sum(amount) as amount from {{ ref('stg_orders') }} group by day
