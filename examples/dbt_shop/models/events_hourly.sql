select date_trunc('hour', happened_at) as hour, kind, count(*) as events from {{ ref('stg_events') }} group by hour, kind
