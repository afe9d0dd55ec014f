-- SPDX-License-Identifier: Apache-2.0
-- What a hold locks and writes. Lock order, the same for everybody:
-- yoyaku_lock_anchor, yoyaku_slot_place, yoyaku_order; each ascending.

-- kind: 0 the probe's own row, 1 booker (owner tenant, no: 16 bits of the
-- hash), 2 area (owner slot, no area_no), 3 quota (owner slot, no price_no).
-- max -1: counted, not in force. map: an assigned area's free places, a bit
-- each, lowest first.
CREATE TABLE IF NOT EXISTS yoyaku_lock_anchor (
  kind TINYINT UNSIGNED NOT NULL,
  owner BIGINT UNSIGNED NOT NULL,
  no INT UNSIGNED NOT NULL,
  used BIGINT NOT NULL,
  max BIGINT NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  map MEDIUMBLOB NULL,
  PRIMARY KEY (kind, owner, no),
  CONSTRAINT yoyaku_never_below_nought CHECK (used >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Who owns a place: this row alone. state: 0 free, 1 held, 2 booked, 3 not
-- for sale
CREATE TABLE IF NOT EXISTS yoyaku_slot_place (
  slot_id BIGINT UNSIGNED NOT NULL,
  place_no INT UNSIGNED NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  state TINYINT UNSIGNED NOT NULL,
  until_us BIGINT NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (slot_id, place_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- state: 1 held, 2 locked, 3 confirmed, 4 released, 5 expired, 6 cancelled,
-- 7 refund_due
CREATE TABLE IF NOT EXISTS yoyaku_order (
  order_id BIGINT UNSIGNED NOT NULL,
  tenant_id INT UNSIGNED NOT NULL,
  state TINYINT UNSIGNED NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  until_us BIGINT NOT NULL,
  begun_us BIGINT NOT NULL,
  max_until_us BIGINT NOT NULL,
  checkout_end_us BIGINT NOT NULL,
  confirmed_us BIGINT NOT NULL,
  attempt INT UNSIGNED NOT NULL,
  late TINYINT UNSIGNED NOT NULL,
  next_line INT UNSIGNED NOT NULL,
  pass BIGINT UNSIGNED NOT NULL,
  token_hash BINARY(32) NOT NULL,
  booker_hash BINARY(16) NOT NULL,
  currency VARBINARY(3) NOT NULL,
  booker VARBINARY(250) NOT NULL,
  reference VARBINARY(250) NOT NULL,
  contact VARBINARY(250) NOT NULL,
  payment VARBINARY(250) NOT NULL,
  data VARBINARY(4096) NOT NULL,
  PRIMARY KEY (order_id),
  UNIQUE KEY by_token (token_hash),
  KEY due (state, until_us),
  KEY by_booker (tenant_id, booker_hash),
  KEY by_reference (tenant_id, reference),
  KEY by_contact (tenant_id, contact)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- History; live says whether a line counts. place_no 4294967295: in a pool.
-- by_slot serves operators' counts only; no hold reads it.
CREATE TABLE IF NOT EXISTS yoyaku_booking (
  order_id BIGINT UNSIGNED NOT NULL,
  line INT UNSIGNED NOT NULL,
  tenant_id INT UNSIGNED NOT NULL,
  booker_hash BINARY(16) NOT NULL,
  live TINYINT UNSIGNED NOT NULL,
  slot_id BIGINT UNSIGNED NOT NULL,
  area_no INT UNSIGNED NOT NULL,
  place_no INT UNSIGNED NOT NULL,
  quantity INT UNSIGNED NOT NULL,
  price_no INT UNSIGNED NOT NULL,
  amount BIGINT NOT NULL,
  currency VARBINARY(3) NOT NULL,
  tariff VARBINARY(64) NOT NULL,
  holder VARBINARY(250) NOT NULL,
  PRIMARY KEY (order_id, line),
  KEY by_booker (tenant_id, booker_hash, live),
  KEY by_slot (slot_id, price_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO yoyaku_lock_anchor (kind, owner, no, used, max, version)
VALUES (0, 0, 0, 0, -1, 1);
