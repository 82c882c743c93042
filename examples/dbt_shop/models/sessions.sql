select customer_id, date_trunc('day', happened_at) as day, count(*) as events, min(happened_at) as began
from {{ ref('stg_events') }} group by customer_id, day
