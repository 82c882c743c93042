select s.day, count(distinct s.customer_id) as visitors, any_value(o.orders) as orders
from {{ ref('sessions') }} s left join {{ ref('orders_daily') }} o using (day) group by s.day
