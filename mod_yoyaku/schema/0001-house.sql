-- SPDX-License-Identifier: Apache-2.0
-- Every step can be run again: a host that finds it done goes on.
-- Names, labels and keys are bytes (VARBINARY); times are epoch microseconds.

CREATE TABLE IF NOT EXISTS yoyaku_schema_version (
  version INT UNSIGNED NOT NULL,
  name VARBINARY(250) NOT NULL,
  applied_us BIGINT NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- version: +1 by every command that reaches over several slots
CREATE TABLE IF NOT EXISTS yoyaku_tenant (
  tenant_id INT UNSIGNED NOT NULL,
  name VARBINARY(64) NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (tenant_id),
  UNIQUE KEY by_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- never changed once written: another drawing is the next version
CREATE TABLE IF NOT EXISTS yoyaku_hall (
  hall_id BIGINT UNSIGNED NOT NULL,
  tenant_id INT UNSIGNED NOT NULL,
  name VARBINARY(250) NOT NULL,
  version INT UNSIGNED NOT NULL,
  width DOUBLE NOT NULL,
  height DOUBLE NOT NULL,
  nsections INT UNSIGNED NOT NULL,
  nplaces INT UNSIGNED NOT NULL,
  ngrades INT UNSIGNED NOT NULL,
  digest BINARY(32) NOT NULL,
  PRIMARY KEY (hall_id),
  UNIQUE KEY by_name (tenant_id, name, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS yoyaku_section (
  hall_id BIGINT UNSIGNED NOT NULL,
  section_no INT UNSIGNED NOT NULL,
  name VARBINARY(250) NOT NULL,
  first_place INT UNSIGNED NOT NULL,
  places INT UNSIGNED NOT NULL,
  PRIMARY KEY (hall_id, section_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS yoyaku_grade (
  hall_id BIGINT UNSIGNED NOT NULL,
  grade_no INT UNSIGNED NOT NULL,
  name VARBINARY(250) NOT NULL,
  color VARBINARY(64) NOT NULL,
  PRIMARY KEY (hall_id, grade_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- place_no counts in plan order, section by section
CREATE TABLE IF NOT EXISTS yoyaku_place (
  hall_id BIGINT UNSIGNED NOT NULL,
  place_no INT UNSIGNED NOT NULL,
  section_no INT UNSIGNED NOT NULL,
  guid VARBINARY(64) NOT NULL,
  row_name VARBINARY(250) NOT NULL,
  seat VARBINARY(250) NOT NULL,
  grade VARBINARY(250) NOT NULL,
  x DOUBLE NOT NULL,
  y DOUBLE NOT NULL,
  joined TINYINT UNSIGNED NOT NULL,
  PRIMARY KEY (hall_id, place_no),
  UNIQUE KEY by_guid (hall_id, guid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO yoyaku_tenant (tenant_id, name, version)
VALUES (1, 'default', 1);
