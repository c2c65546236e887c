"""The editor completes names that the script declares, as the control plane reads them."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.support.axe import axe_source, violations

pytestmark = pytest.mark.matrix

DECLARED = """
CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5'
);
CREATE TABLE customers (customer_id BIGINT, name STRING, PRIMARY KEY (customer_id) NOT ENFORCED)
WITH ('connector' = 'delta', 'path' = 'customers');
"""
TABLES = [["clicks", ["user_id", "item_id"]], ["customers", ["customer_id", "name"]]]
JOIN = "SELECT {} FROM clicks AS c LEFT JOIN customers FOR SYSTEM_TIME AS OF c.proctime AS u ON x"
CASES = {
    "a_table": ("SELECT 1 FROM cl|", ["clicks"]),
    "tables_in_any_case": ("SELECT 1 FROM C|", ["clicks", "customers"]),
    "columns_of_the_tables_that_are_read": (JOIN.format("u|"), ["user_id"]),
    "no_columns_of_tables_that_are_not": ("SELECT cust| FROM clicks", ["customers"]),
    "columns_behind_an_alias": (JOIN.format("u.|"), ["customer_id", "name"]),
    "the_beginning_behind_an_alias": (JOIN.format("c.i|"), ["item_id"]),
    "columns_behind_a_table": ("SELECT clicks.us| FROM clicks", ["user_id"]),
    "nothing_behind_an_unknown_alias": ("SELECT x.us| FROM clicks", []),
    "another_statement_s_alias": ("SELECT 1 FROM clicks AS c; SELECT c.us|", []),
    "nothing_in_a_string": ("SELECT 'cl|'", []),
    "nothing_in_a_comment": ("-- cl|", []),
    "nothing_before_a_word": ("SELECT |", []),
    "nothing_that_is_whole": ("SELECT 1 FROM clicks|", []),
}
_COMPLETED = """
  const data = await import("/ui/editor_data.js");
  const tables = new Map(a[1]);
  return a[0].map((text) => {
    const caret = text.indexOf("|");
    const bare = data.withoutComments(text.replace("|", ""));
    return m.completions(bare, caret, tables).names;
  });
"""
OFFERED = "return [...document.querySelectorAll('[data-action=complete]')].map((e) => e.innerText)"
VALUE = "return document.querySelector('#script-text').value"


def test_names_fit_what_is_being_typed(page):
    texts = [text for text, _ in CASES.values()]
    found = page.call("completion.js", _COMPLETED, texts, TABLES)
    assert dict(zip(CASES, found, strict=True)) == {name: case[1] for name, case in CASES.items()}


DECLARATIONS = {
    "whole_ones": ("CREATE TABLE a (x INT);\nSELECT 1;", ["CREATE TABLE a (x INT);"]),
    "not_one_that_is_being_typed": ("CREATE TABLE a (x", []),
    "a_semicolon_in_a_string": ("CREATE TABLE a ('c' = ';');S", ["CREATE TABLE a ('c' = ';');"]),
}


@pytest.mark.parametrize(("text", "declared"), DECLARATIONS.values(), ids=DECLARATIONS)
def test_declarations_are_found(page, text, declared):
    body = """
      const data = await import("/ui/editor_data.js");
      return m.declarations(a[0], data.withoutComments(a[0])).map((each) => each.trim());
    """
    assert page.call("completion.js", body, text) == declared


def test_a_table_and_its_column_are_completed_by_key_and_by_mouse(plane, browser):
    browser.open(f"{plane.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    area = browser.find("#script-text")
    area.clear()
    area.send_keys(DECLARED)

    def offers(*names):
        browser.wait(lambda: browser.run(OFFERED) == list(names), f"{names} are offered", "main")

    area.send_keys("SELECT 1 FROM cus")
    offers("customers")
    assert violations(browser, axe_source()) == []
    area.send_keys(Keys.CONTROL, " ")
    assert browser.run(VALUE).endswith("SELECT 1 FROM customers")
    offers()
    area.send_keys(" WHERE customers.na")
    offers("name")
    browser.find("[data-action=complete]").click()
    assert browser.run(VALUE).endswith("WHERE customers.name")
    assert browser.run("return document.activeElement.id") == "script-text"
