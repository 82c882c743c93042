select date_trunc('day', ordered_at) as day, sum(amount * price) as revenue
from {{ ref('stg_orders') }} join {{ source('raw', 'prices') }} using (product_id) group by day
