import { MenuOutlined } from "@ant-design/icons";
import { Button, Drawer } from "antd";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, Outlet, useLocation, useNavigation } from "react-router";
import { useSession } from "../api/session.ts";
import { app } from "../i18n/texts/app.ts";
import { useText } from "../i18n/useText.ts";
import { ConnectionBanner } from "./ConnectionBanner.tsx";
import styles from "./Layout.module.css";
import { Navigation } from "./Navigation.tsx";

const SignIn = lazy(() => import("./SignIn.tsx").then(({ SignIn: component }) => ({ default: component })));

/** Frame of all pages. While a key is requested, the page below stays with its input. */
export function Layout() {
  const t = useText(app);
  const { needed } = useSession();
  const { pathname } = useLocation();
  const { state } = useNavigation();
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  const shown = useRef(pathname);

  useEffect(() => {
    // Screen readers announce the new page.
    if (shown.current !== pathname) main.current?.focus({ preventScroll: true });
    shown.current = pathname;
  }, [pathname]);

  return (
    <div className={styles["frame"]}>
      <a
        className={styles["skip"]}
        href="#main"
        onClick={(click) => {
          click.preventDefault();
          main.current?.focus();
        }}
      >
        {t("skip")}
      </a>
      {state === "loading" && <div className={styles["progress"]} role="status" aria-label={t("loading")} />}
      <header className={styles["top"]}>
        <Button type="text" icon={<MenuOutlined />} aria-label={t("openMenu")} onClick={() => setMenu(true)} />
        <Brand />
      </header>
      <Drawer placement="left" size={264} open={menu} onClose={() => setMenu(false)} title={<Brand />} rootClassName={styles["menu"] ?? ""}>
        <Navigation onNavigate={() => setMenu(false)} />
      </Drawer>
      <div className={styles["side"]}>
        <Brand />
        <Navigation />
      </div>
      <div>
        <ConnectionBanner />
        <main id="main" ref={main} tabIndex={-1} className={styles["main"]}>
          {needed && (
            <Suspense>
              <SignIn />
            </Suspense>
          )}
          <div hidden={needed}>
            <Outlet />
          </div>
        </main>
      </div>
    </div>
  );
}

function Brand() {
  return (
    <Link to="/" className={styles["brand"]}>
      <img src="/icon.svg" alt="" width={24} height={24} />
      {"Tambour"}
    </Link>
  );
}
