-- SPDX-License-Identifier: Apache-2.0
-- What is for sale. Only operators change these rows; holds read them without
-- a lock, after their locks.

CREATE TABLE IF NOT EXISTS yoyaku_resource (
  tenant_id INT UNSIGNED NOT NULL,
  resource VARBINARY(64) NOT NULL,
  series VARBINARY(64) NOT NULL,
  PRIMARY KEY (tenant_id, resource),
  KEY by_series (tenant_id, series)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- slot_id is random, so that a copy kept by somebody who knew another book is
-- never taken for one of this. version: +1 by every command that touches it.
-- state: 0 closed, 1 open. Times: 0 not set. hall_id 0: only pools.
CREATE TABLE IF NOT EXISTS yoyaku_slot (
  slot_id BIGINT UNSIGNED NOT NULL,
  tenant_id INT UNSIGNED NOT NULL,
  slot_key VARBINARY(64) NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  state TINYINT UNSIGNED NOT NULL,
  title VARBINARY(250) NOT NULL,
  resource VARBINARY(64) NOT NULL,
  series VARBINARY(64) NOT NULL,
  hall_id BIGINT UNSIGNED NOT NULL,
  nplaces INT UNSIGNED NOT NULL,
  starts_us BIGINT NOT NULL,
  ends_us BIGINT NOT NULL,
  opens_us BIGINT NOT NULL,
  closes_us BIGINT NOT NULL,
  PRIMARY KEY (slot_id),
  UNIQUE KEY by_key (tenant_id, slot_key),
  KEY by_start (tenant_id, starts_us, slot_key),
  KEY by_resource (tenant_id, resource)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- mode: 0 closed, 1 placed, 2 assigned, 3 pooled
CREATE TABLE IF NOT EXISTS yoyaku_area (
  slot_id BIGINT UNSIGNED NOT NULL,
  area_no INT UNSIGNED NOT NULL,
  mode TINYINT UNSIGNED NOT NULL,
  name VARBINARY(250) NOT NULL,
  max BIGINT NOT NULL,
  first_place INT UNSIGNED NOT NULL,
  places INT UNSIGNED NOT NULL,
  PRIMARY KEY (slot_id, area_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- grade NULL: every grade; area_no -1: every area; quota -1: none in force;
-- counted 1: the anchor exists, lock and count it
CREATE TABLE IF NOT EXISTS yoyaku_price (
  slot_id BIGINT UNSIGNED NOT NULL,
  price_no INT UNSIGNED NOT NULL,
  tariff VARBINARY(64) NOT NULL,
  grade VARBINARY(250) NULL,
  area_no INT NOT NULL,
  amount BIGINT NOT NULL,
  currency VARBINARY(3) NOT NULL,
  quota BIGINT NOT NULL,
  counted TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (slot_id, price_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- per: 0 order, 1 booker. reach: 0 slot, 1 resource, 2 series, 3 all.
-- counted: 0 places, 1 slots, 2 resources. in_force 0: lock, do not refuse yet
CREATE TABLE IF NOT EXISTS yoyaku_limit (
  limit_id BIGINT UNSIGNED NOT NULL,
  tenant_id INT UNSIGNED NOT NULL,
  per TINYINT UNSIGNED NOT NULL,
  reach TINYINT UNSIGNED NOT NULL,
  reach_key VARBINARY(64) NOT NULL,
  counted TINYINT UNSIGNED NOT NULL,
  max BIGINT NOT NULL,
  in_force TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (limit_id),
  UNIQUE KEY by_words (tenant_id, per, reach, reach_key, counted)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
