select a.day, b.day - a.day as later, count(*) as customers
from {{ ref('sessions') }} a join {{ ref('sessions') }} b using (customer_id) where b.day >= a.day group by all
