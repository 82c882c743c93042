select f.day, f.visitors, f.orders, (select count(*) from {{ ref('retention') }}) as pairs from {{ ref('funnel') }} f
