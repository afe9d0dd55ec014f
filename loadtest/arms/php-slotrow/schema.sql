-- SPDX-License-Identifier: Apache-2.0
-- A booking site as many are: one row a slot, locked by whoever changes
-- anything in it.
CREATE TABLE IF NOT EXISTS slotrow_hall (
  place_no INT UNSIGNED NOT NULL PRIMARY KEY,
  guid VARCHAR(64) NOT NULL, section VARCHAR(250) NOT NULL,
  row_name VARCHAR(64) NOT NULL, seat VARCHAR(64) NOT NULL,
  grade VARCHAR(64) NOT NULL, x DOUBLE NOT NULL, y DOUBLE NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS slotrow_slot (
  slot_key VARCHAR(64) NOT NULL PRIMARY KEY, title VARCHAR(250) NOT NULL,
  free INT NOT NULL, changed DATETIME NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS slotrow_place (
  slot_key VARCHAR(64) NOT NULL, place_no INT UNSIGNED NOT NULL,
  guid VARCHAR(64) NOT NULL, state TINYINT NOT NULL DEFAULT 0,
  order_id BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (slot_key, place_no), UNIQUE KEY by_guid (slot_key, guid),
  KEY by_order (order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS slotrow_order (
  order_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  token CHAR(32) NOT NULL, slot_key VARCHAR(64) NOT NULL,
  state VARCHAR(16) NOT NULL, until DATETIME NOT NULL, total INT NOT NULL,
  UNIQUE KEY by_token (token)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS slotrow_line (
  line_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id BIGINT NOT NULL, slot_key VARCHAR(64) NOT NULL,
  place_no INT UNSIGNED NOT NULL, price INT NOT NULL,
  KEY by_order (order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE IF NOT EXISTS slotrow_tag (
  name VARCHAR(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT IGNORE INTO slotrow_tag VALUES ('site', 1);
