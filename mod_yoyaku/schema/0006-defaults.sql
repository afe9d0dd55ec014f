-- SPDX-License-Identifier: Apache-2.0

-- What a statement does not name is nothing: a hold says only what it has to
-- say, and an order that is written over names what has changed.
ALTER TABLE yoyaku_order
  ALTER COLUMN tenant_id SET DEFAULT 0,
  ALTER COLUMN state SET DEFAULT 0,
  ALTER COLUMN until_us SET DEFAULT 0,
  ALTER COLUMN begun_us SET DEFAULT 0,
  ALTER COLUMN max_until_us SET DEFAULT 0,
  ALTER COLUMN checkout_end_us SET DEFAULT 0,
  ALTER COLUMN confirmed_us SET DEFAULT 0,
  ALTER COLUMN attempt SET DEFAULT 0,
  ALTER COLUMN late SET DEFAULT 0,
  ALTER COLUMN next_line SET DEFAULT 0,
  ALTER COLUMN pass SET DEFAULT 0,
  ALTER COLUMN token_hash SET DEFAULT '',
  ALTER COLUMN booker_hash SET DEFAULT '',
  ALTER COLUMN currency SET DEFAULT '',
  ALTER COLUMN booker SET DEFAULT '',
  ALTER COLUMN reference SET DEFAULT '',
  ALTER COLUMN contact SET DEFAULT '',
  ALTER COLUMN payment SET DEFAULT '',
  ALTER COLUMN data SET DEFAULT '';

ALTER TABLE yoyaku_booking
  ALTER COLUMN tenant_id SET DEFAULT 0,
  ALTER COLUMN live SET DEFAULT 0,
  ALTER COLUMN slot_id SET DEFAULT 0,
  ALTER COLUMN area_no SET DEFAULT 0,
  ALTER COLUMN place_no SET DEFAULT 0,
  ALTER COLUMN quantity SET DEFAULT 0,
  ALTER COLUMN price_no SET DEFAULT 0,
  ALTER COLUMN amount SET DEFAULT 0,
  ALTER COLUMN booker_hash SET DEFAULT '',
  ALTER COLUMN currency SET DEFAULT '',
  ALTER COLUMN tariff SET DEFAULT '',
  ALTER COLUMN holder SET DEFAULT '';
