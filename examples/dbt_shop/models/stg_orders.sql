{{ config(materialized='view') }}
select id, customer_id, product_id, amount, ordered_at from {{ source('raw', 'orders') }} where amount > 0
