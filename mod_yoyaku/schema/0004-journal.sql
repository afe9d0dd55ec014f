-- SPDX-License-Identifier: Apache-2.0

-- One row for each slot of an order that a transaction wrote. at_us is the
-- clock of the writing packet. change:
-- {"until":us,"places":[[no,state,version],..],"counts":[[kind,no,delta,version],..]}
CREATE TABLE IF NOT EXISTS yoyaku_journal (
  slot_id BIGINT UNSIGNED NOT NULL,
  at_us BIGINT NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  change_id BIGINT UNSIGNED NOT NULL,
  why VARBINARY(250) NOT NULL,
  who VARBINARY(250) NOT NULL,
  `change` MEDIUMBLOB NOT NULL,
  PRIMARY KEY (slot_id, at_us, order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Answers that changed something, for a day, to be given again
CREATE TABLE IF NOT EXISTS yoyaku_idempotency (
  tenant_id INT UNSIGNED NOT NULL,
  scope BINARY(32) NOT NULL,
  request BINARY(32) NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  salt BINARY(16) NOT NULL,
  answer SMALLINT UNSIGNED NOT NULL,
  status SMALLINT UNSIGNED NOT NULL,
  at_us BIGINT NOT NULL,
  extra BLOB NOT NULL,
  PRIMARY KEY (tenant_id, scope),
  KEY by_age (at_us)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
