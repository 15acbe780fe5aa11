package commands_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/schemas"
)

func describe(all []commands.Finding) string {
	var out []string
	for _, f := range all {
		text := string(f.Risk[:1]) + " " + f.Why
		if f.Name != "" {
			text += " (" + f.Name + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestSQLFindings(t *testing.T) {
	t.Parallel()
	const update, delete, truncate = "h changes every row: UPDATE without WHERE", "h deletes every row: DELETE without WHERE", "h deletes every row: TRUNCATE"
	for sql, want := range map[string]string{
		"UPDATE orders SET status = 'refunded', at = now(); -- only order 4711":               update + " (orders)",
		"update orders set a = 1 -- where id = 4711":                                          update + " (orders)",
		"update orders set a = 1 /* where id = 4711 */":                                       update + " (orders)",
		"UPDATE orders SET note = 'x where id = 1'":                                           update + " (orders)",
		"UPDATE orders SET a = (SELECT b FROM c WHERE d)":                                     update + " (orders)",
		"UPDATE ONLY shop.orders o SET a = 1":                                                 update + " (shop.orders)",
		"UPDATE orders SET a = 1 WHERE id = 4711":                                             "m changes rows of a table (orders)",
		"UPDATE orders SET a = 1 WHERE 1 = 1":                                                 update + " (orders)",
		"UPDATE orders SET a = 1 WHERE true":                                                  update + " (orders)",
		"UPDATE orders SET a = 1 WHERE id = 2 OR 1=1":                                         update + " (orders)",
		"DELETE FROM orders":                                                                  delete + " (orders)",
		"SELECT 1; DELETE FROM \"orders\" ;":                                                  delete + " (orders)",
		"DELETE FROM orders WHERE id = 1":                                                     "m deletes rows of a table (orders)",
		"DELETE FROM orders # WHERE id = 1":                                                   "m deletes rows of a table (orders); " + delete + " (orders)",
		"WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone WHERE a":            delete + " (orders)",
		"DO $$ BEGIN DELETE FROM orders; END $$":                                              delete + " (orders)",
		"EXPLAIN ANALYZE DELETE FROM orders":                                                  delete + " (orders)",
		"DELETE o FROM orders o JOIN x ON o.id = x.id":                                        delete + " (orders)",
		"TRUNCATE orders, lines CASCADE":                                                      truncate + " (orders)",
		"truncate table `orders`":                                                             truncate + " (orders)",
		"DROP TABLE IF EXISTS orders":                                                         "h deletes a whole table: DROP (orders)",
		"DROP DATABASE IF EXISTS shop_reports WITH (FORCE)":                                   "h deletes a whole database: DROP (shop_reports)",
		"ALTER TABLE orders DROP COLUMN note":                                                 "m changes the structure of a database; h deletes a whole column: DROP (note)",
		"/*! DROP TABLE orders */":                                                            "h deletes a whole table: DROP (orders)",
		`SELECT 'it\'; DROP TABLE orders; --'`:                                                "h deletes a whole table: DROP (orders)",
		"GRANT ALL ON orders TO public":                                                       "h changes who may use a database",
		"CREATE ROLE eve SUPERUSER":                                                           "h changes who may use a database",
		"CREATE TABLE x (a int)":                                                              "m changes the structure of a database",
		"INSERT INTO orders VALUES (1)":                                                       "m adds or replaces data in a database (orders)",
		"COPY orders TO PROGRAM 'sh'":                                                         "h runs programs or uses files of the database's server",
		`\! rm -rf /`:                                                                         "h runs programs or uses files of the database's server",
		"SELECT * FROM orders WHERE note = 'drop table x' -- delete from y":                   "",
		"SELECT * FROM orders FOR UPDATE":                                                     "",
		"SELECT truncate(a, 2), replace(b, 'x', 'y'), updated FROM deletes":                   "",
		"INSERT INTO a VALUES (1) ON CONFLICT (id) DO UPDATE SET b = 1":                       "m adds or replaces data in a database (a)",
		"ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c ON DELETE CASCADE ON UPDATE SET NULL": "m changes the structure of a database",
		"how to delete items of a list":                                                       "",
		"create react app and update the set":                                                 "",
		"truncate a string in javascript":                                                     "",
		"EXPLAIN SELECT 1":                                                                    "",
	} {
		assert.Equal(t, want, describe(commands.SQLFindings(sql)), sql)
	}
}

func TestCodeFindings(t *testing.T) {
	t.Parallel()
	const deletes, starts, builds, network, writes = "runs code that deletes files", "runs code that starts programs", "runs code that it builds or decodes", "runs code that uses the network", "runs code that writes files"
	for code, want := range map[string][]string{
		"import shutil,os;d=os.path.expanduser('~');shutil.rmtree(d)": {deletes},
		"import os; os.remove('x')":                                   {deletes},
		"from pathlib import Path; Path('x').unlink()":                {deletes},
		"require('fs').rmSync('x',{recursive:true})":                  {deletes},
		"const fs = require('fs'); fs.rm('x', () => {})":              {deletes},
		"FileUtils.rm_rf('x')":                                        {deletes},
		"unlink $_ for glob '*'":                                      {deletes},
		"import subprocess; subprocess.run(['ls'])":                   {starts},
		"require('child_process').execSync('ls')":                     {starts},
		"system('ls')":       {starts},
		"eval(atob('eA=='))": {builds},
		"exec(__import__('base64').b64decode('eA=='))":                      {builds},
		"require('https').get('https://x.test',r=>{})":                      {network},
		"import urllib.request as u; u.urlopen('https://x.test')":           {network},
		"fetch('https://x.test').then(x=>x)":                                {network},
		"open('x', 'w').write('y')":                                         {writes},
		"require('fs').writeFileSync('x','y')":                              {writes},
		"import json;d=json.load(open('package.json'));print(d['version'])": nil,
		"console.log(require('./package.json').version)":                    nil,
		"m = /a(b)/.exec(s); import re; re.compile('x')":                    nil,
		"print(open('a.txt', 'r').read())":                                  nil,
	} {
		var got []string
		for _, f := range commands.CodeFindings(commands.ProgramCode, code) {
			got = append(got, f.Why)
		}
		assert.Equal(t, want, got, code)
	}
	assert.Equal(t, "h deletes documents of a database", describe(commands.CodeFindings(commands.MongoCode, "db.users.deleteMany({})")))
	assert.Equal(t, "h deletes a whole database or collection", describe(commands.CodeFindings(commands.MongoCode, "db.dropDatabase()")))
	assert.Equal(t, commands.ProgramCode, commands.LanguageOf("/usr/bin/python3.11"))
	assert.Equal(t, schemas.RiskHigh, commands.SQLFindings("drop table x")[0].Risk)
}

func TestLinesInCode(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"rm -rf /srv/x"}, commands.LinesIn("import os; os.system('rm -rf /srv/x'); print('all gone now')"))
	assert.Equal(t, []string{"git push --force"}, commands.LinesIn(`subprocess.run(["git", "push", "--force"])`))
	assert.Equal(t, []string{"rm -rf x"}, commands.LinesIn("`rm -rf x`"))
	assert.Empty(t, commands.LinesIn("print('rm -rf x')"))
}
