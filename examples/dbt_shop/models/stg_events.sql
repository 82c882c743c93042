{{ config(materialized='ephemeral') }}
select id, customer_id, kind, happened_at from {{ source('raw', 'events') }}
