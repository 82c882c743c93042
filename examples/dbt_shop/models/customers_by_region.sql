select region, count(*) as customers from {{ source('raw', 'customers') }} join {{ ref('regions') }} using (country) group by region
