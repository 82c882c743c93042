select * from {{ ref('orders_by_customer') }} order by amount desc limit 100
